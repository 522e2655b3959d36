"""The same in earnest: real consumers against a real node, by the wall clock, in half a minute.

The script does one thing at a time and waits until the group has settled, so it knows what every
rebalance was for. Its times are what it saw from outside: a rebalance lies between them. Where
confluent-kafka is installed, a librdkafka member takes part and records are produced.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol

from kohort.client.consumer import Consumer
from kohort.client.topic_partition import TopicPartition
from kohort.coordinator.notes import Ending, Party, Trigger
from kohort.corpus.files import claim, write_lines
from kohort.corpus.making import Made
from kohort.corpus.readme import page_of_real
from kohort.corpus.truth import Group, LookAlike, Rebalance, Truth
from kohort.log.catalog import Catalog
from kohort.node.embedded import Node
from kohort.node.topics import EVENTS, OFFSETS
from kohort.types import Generation, GroupId, MemberId, Millis, Partition, Topic

_GROUP: Final = GroupId("orders-billing")
_TOPIC: Final = Topic("orders")
_PARTITIONS: Final = 6
_SESSION_MS: Final = 1_500
_DEADLINE_S: Final = 60.0
_SILENT: Final = {"log_level": 0}
"""It would tell the terminal that the node has gone, as if that was news."""
_RECORDS: Final = 600
"""Produced before every step."""


class NotSettled(Exception):
    """The group did not come to rest in time."""


class Member(Protocol):
    """What the script needs of a consumer, whoever made it."""

    client_id: str

    def poll(self) -> None: ...

    def held(self) -> set[TopicPartition]: ...

    def member_id(self) -> MemberId: ...

    def close(self) -> None: ...


class OurMember:
    def __init__(self, servers: str, client_id: str) -> None:
        self.client_id = client_id
        self.consumer = Consumer(
            bootstrap_servers=servers,
            group_id=_GROUP,
            client_id=client_id,
            session_timeout_ms=_SESSION_MS,
            heartbeat_interval_ms=200,
            auto_commit_interval_ms=250,
            partition_assignment_strategy="range",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=50,
        )
        self.consumer.subscribe([_TOPIC])

    def poll(self) -> None:
        self.consumer.poll(timeout_ms=20)

    def held(self) -> set[TopicPartition]:
        return set(self.consumer.assignment())

    def member_id(self) -> MemberId:
        return self.consumer.group_metadata().member_id

    def generation(self) -> Generation:
        standing = self.consumer.group_metadata()
        return standing.generation if standing.is_stable else Generation(-1)

    def close(self) -> None:
        self.consumer.close()


class Librdkafka:
    def __init__(self, servers: str, client_id: str) -> None:
        from confluent_kafka import Consumer as Theirs  # noqa: PLC0415  # not everybody has it

        self.client_id = client_id
        self._consumer = Theirs(
            {
                "bootstrap.servers": servers,
                "group.id": _GROUP,
                "client.id": client_id,
                "session.timeout.ms": _SESSION_MS,
                "heartbeat.interval.ms": 200,
                "auto.commit.interval.ms": 250,
                "partition.assignment.strategy": "range",
                "auto.offset.reset": "earliest",
                **_SILENT,
            }
        )
        self._consumer.subscribe([_TOPIC])

    def poll(self) -> None:
        self._consumer.consume(500, 0.02)

    def held(self) -> set[TopicPartition]:
        return {
            TopicPartition(Topic(each.topic), Partition(each.partition))
            for each in self._consumer.assignment()
        }

    def member_id(self) -> MemberId:
        return MemberId(self._consumer.memberid() or "")

    def close(self) -> None:
        self._consumer.close()


class Play:
    """The script, the members it has on stage, and what it knows to be true."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.truth = Truth()
        self.members: list[Member] = []
        self.first = OurMember(servers, "billing-1")
        self.ends: list[str] = []
        self._generation = Generation(0)
        self._produce: Callable[[], None] = _producer(servers)

    def act(
        self,
        trigger: Trigger,
        deed: Callable[[], Member],
        *,
        ending: Ending = Ending.STABLE,
    ) -> None:
        """Do one thing, and wait for what comes of it; `deed` returns whose doing it was."""
        self._produce()
        before, started = self._generation, _now()
        # Whoever is gone cannot be asked for its id any more.
        ids = {member.client_id: member.member_id() for member in self.members}
        culprit = deed()
        if ending is Ending.STABLE:
            self._settle()
            self._look()
        else:
            self._generation = Generation(before + 1)
        member_id = ids.get(culprit.client_id) or culprit.member_id()
        self.truth.rebalances.append(
            Rebalance(
                group_id=_GROUP,
                trigger=trigger,
                culprit=_party(culprit.client_id, member_id),
                generation_before=before,
                generation=self._generation,
                started_ms=started,
                ended_ms=_now(),
                ending=ending,
            )
        )

    def enter(self, member: Member) -> Member:
        self.members.append(member)
        return member

    def leave(self, member: Member) -> Member:
        self.members.remove(member)
        member.close()
        return member

    def vanish(self, member: OurMember) -> Member:
        """As if its process had been killed."""
        self.members.remove(member)
        member.consumer.abandon()
        return member

    def enforce(self, member: OurMember) -> Member:
        member.consumer.enforce_rebalance("a script wants it")
        return member

    def _settle(self) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        everything = sorted((_TOPIC, number) for number in range(_PARTITIONS))
        while time.monotonic() < deadline:
            for member in self.members:
                member.poll()
            held = sorted(tuple(each) for member in self.members for each in member.held())
            generation = self.first.generation()
            if held == everything and generation > self._generation:
                self._generation = generation
                return
        raise NotSettled(f"{len(self.members)} members did not settle in {_DEADLINE_S:.0f} s")

    def _look(self) -> None:
        """Where the logs end now."""
        partitions = sorted(self.first.held())
        starts = self.first.consumer.beginning_offsets(partitions)
        ends = self.first.consumer.end_offsets(partitions)
        for each in partitions:
            look = {
                "at_ms": _now(),
                "topic": each.topic,
                "partition": each.partition,
                "log_start": starts[each],
                "log_end": ends[each],
            }
            self.ends.append(json.dumps(look, separators=(",", ":")))


def make_real(to: Path, partitions: int = 4) -> Made:
    """Raises as `make` does, and NotSettled where this machine is too slow for it."""
    claim(to)
    settings: dict[str, Any] = {
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 500,
        "num.partitions": _PARTITIONS,
        "offsets.topic.num.partitions": partitions,
    }
    with Node(data=to / "log", settings=settings) as node, _stage(node.bootstrap_servers) as play:
        _perform(play)
    counts = _count_records(to / "log")
    made = Made(
        groups=1,
        records=counts[OFFSETS],
        events=counts[EVENTS],
        rebalances=len(play.truth.rebalances),
        pathologies=0,
        look_alikes=len(play.truth.look_alikes),
    )
    write_lines(to / "ends.jsonl", play.ends)
    write_lines(to / "truth.jsonl", play.truth.lines())
    (to / "README.md").write_text(page_of_real(made), "utf-8")
    return made


@contextmanager
def _stage(servers: str) -> Iterator[Play]:
    play = Play(servers)
    try:
        yield play
    finally:
        for member in play.members:
            member.close()


def _perform(play: Play) -> None:
    play.truth.groups.append(
        Group(group_id=_GROUP, kind="real", protocol_type="consumer", topics=(_TOPIC,))
    )
    play.act(Trigger.MEMBER_JOINED, lambda: play.enter(play.first))
    second = OurMember(play.servers, "billing-2")
    play.act(Trigger.MEMBER_JOINED, lambda: play.enter(second))
    other_make = Librdkafka if find_spec("confluent_kafka") else OurMember
    third: Member = other_make(play.servers, "billing-3")
    play.act(Trigger.MEMBER_JOINED, lambda: play.enter(third))
    play.act(Trigger.LEADER_REJOINED, lambda: play.enforce(play.first))
    play.act(Trigger.MEMBER_LEFT, lambda: play.leave(second))
    fourth = OurMember(play.servers, "billing-4")
    play.act(Trigger.MEMBER_JOINED, lambda: play.enter(fourth))
    died = _now()
    # It was heard of a moment before it died, so nothing begins before half of its session is over.
    play.act(Trigger.SESSION_EXPIRED, lambda: play.vanish(fourth))
    play.truth.look_alikes.append(
        LookAlike(
            resembles="crash-loop",
            group_id=_GROUP,
            from_ms=died,
            to_ms=_now(),
            subject=fourth.client_id,
            what="dies once, and does not come back",
        )
    )
    play.act(Trigger.MEMBER_LEFT, lambda: play.leave(third))
    play.act(Trigger.MEMBER_LEFT, lambda: play.leave(play.first), ending=Ending.EMPTY)


def _producer(servers: str) -> Callable[[], None]:
    if not find_spec("confluent_kafka"):
        return lambda: None
    from confluent_kafka import Producer  # noqa: PLC0415  # not everybody has it

    producer = Producer({"bootstrap.servers": servers, **_SILENT})

    def produce() -> None:
        for number in range(_RECORDS):
            producer.produce(_TOPIC, value=b"%d" % number, partition=number % _PARTITIONS)
        left = producer.flush(_DEADLINE_S)
        if left:
            raise NotSettled(f"{left} records could not be produced")

    return produce


def _count_records(directory: Path) -> dict[Topic, int]:
    """How many each topic has, once the node is gone."""
    catalog, _ = Catalog.open(directory, _now())
    counts: dict[Topic, int] = {}
    for topic in catalog.topics:
        logs = (catalog.partition(topic.name, each) for each in range(topic.partition_count))
        counts[topic.name] = sum(log.end_offset for log in logs if log is not None)
    catalog.close(_now())
    return counts


def _party(client_id: str, member_id: MemberId) -> Party:
    return Party(
        member_id=member_id, instance_id=None, client_id=client_id, client_host="/127.0.0.1"
    )


def _now() -> Millis:
    return Millis(time.time_ns() // 1_000_000)
