"""A short history of real consumers and a real node, on the wall clock; it takes half a minute.

The script takes one action at a time and waits until the group is stable, so it knows the cause of
every rebalance. Each rebalance lies between the two times that the script records. If
confluent-kafka is installed, one member is librdkafka and records are produced.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Protocol

from kohort.client.consumer import Consumer
from kohort.coordinator.events import MemberInfo, RebalanceResult, Trigger
from kohort.events.internal_topics import CONSUMER_OFFSETS, KOHORT_EVENTS
from kohort.log.catalog import Catalog
from kohort.testing.node import Node
from kohort.types import Generation, GroupId, MemberId, Millis, Partition, Topic, TopicPartition
from tools.histories.files import create_empty, write_lines
from tools.histories.generator import HistoryCounts
from tools.histories.labels import GroupLabel, Labels, LookAlikeLabel, RebalanceLabel
from tools.histories.readme import live_readme_of

_GROUP: Final = GroupId("orders-billing")
_TOPIC: Final = Topic("orders")
_PARTITIONS: Final = 6
_SESSION_MS: Final = 1_500
_TIMEOUT_S: Final = 60.0
_NO_LOGS: Final = {"log_level": 0}
"""librdkafka would log to the terminal that the node has stopped."""
_RECORDS: Final = 600
"""Produced before every step."""


class GroupNotStable(Exception):
    """The group was not stable in time."""


class LiveMember(Protocol):
    client_id: str

    def poll(self) -> None: ...

    def assigned(self) -> set[TopicPartition]: ...

    def member_id(self) -> MemberId: ...

    def close(self) -> None: ...


class KohortMember:
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

    def assigned(self) -> set[TopicPartition]:
        return set(self.consumer.assignment())

    def member_id(self) -> MemberId:
        return self.consumer.group_metadata().member_id

    def generation(self) -> Generation:
        metadata = self.consumer.group_metadata()
        return metadata.generation_id if metadata.is_stable else Generation(-1)

    def close(self) -> None:
        self.consumer.close()


class LibrdkafkaMember:
    def __init__(self, servers: str, client_id: str) -> None:
        from confluent_kafka import Consumer as ConfluentConsumer  # noqa: PLC0415  # optional

        self.client_id = client_id
        self._consumer = ConfluentConsumer(
            {
                "bootstrap.servers": servers,
                "group.id": _GROUP,
                "client.id": client_id,
                "session.timeout.ms": _SESSION_MS,
                "heartbeat.interval.ms": 200,
                "auto.commit.interval.ms": 250,
                "partition.assignment.strategy": "range",
                "auto.offset.reset": "earliest",
                **_NO_LOGS,
            }
        )
        self._consumer.subscribe([_TOPIC])

    def poll(self) -> None:
        self._consumer.consume(500, 0.02)

    def assigned(self) -> set[TopicPartition]:
        return {
            TopicPartition(Topic(each.topic), Partition(each.partition))
            for each in self._consumer.assignment()
        }

    def member_id(self) -> MemberId:
        return MemberId(self._consumer.memberid() or "")

    def close(self) -> None:
        self._consumer.close()


class LiveScript:
    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.labels = Labels()
        self.members: list[LiveMember] = []
        self.first = KohortMember(servers, "billing-1")
        self.ends: list[str] = []
        self._generation = Generation(0)
        self._produce: Callable[[], None] = _producer(servers)

    def step(
        self,
        trigger: Trigger,
        action: Callable[[], LiveMember],
        *,
        ending: RebalanceResult = RebalanceResult.STABLE,
    ) -> None:
        """Run the action, wait for its rebalance and label it; `action` returns the initiator."""
        self._produce()
        before, started = self._generation, _now()
        # A closed consumer no longer has a member id.
        ids = {member.client_id: member.member_id() for member in self.members}
        initiator = action()
        if ending is RebalanceResult.STABLE:
            self._wait_until_stable()
            self._record_end_offsets()
        else:
            self._generation = Generation(before + 1)
        member_id = ids.get(initiator.client_id) or initiator.member_id()
        self.labels.rebalances.append(
            RebalanceLabel(
                group_id=_GROUP,
                trigger=trigger,
                initiator=_identity(initiator.client_id, member_id),
                generation_before=before,
                generation=self._generation,
                started_ms=started,
                ended_ms=_now(),
                ending=ending,
            )
        )

    def join(self, member: LiveMember) -> LiveMember:
        self.members.append(member)
        return member

    def leave(self, member: LiveMember) -> LiveMember:
        self.members.remove(member)
        member.close()
        return member

    def kill(self, member: KohortMember) -> LiveMember:
        """As if its process had been killed: it sends no LeaveGroup request."""
        self.members.remove(member)
        member.consumer.abandon()
        return member

    def enforce(self, member: KohortMember) -> LiveMember:
        member.consumer.enforce_rebalance("a script wants it")
        return member

    def _wait_until_stable(self) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        everything = sorted((_TOPIC, number) for number in range(_PARTITIONS))
        while time.monotonic() < deadline:
            for member in self.members:
                member.poll()
            assigned = sorted(tuple(each) for member in self.members for each in member.assigned())
            generation = self.first.generation()
            if assigned == everything and generation > self._generation:
                self._generation = generation
                return
        raise GroupNotStable(
            f"{len(self.members)} members were not stable within {_TIMEOUT_S:.0f} s"
        )

    def _record_end_offsets(self) -> None:

        partitions = sorted(self.first.assigned())
        starts = self.first.consumer.beginning_offsets(partitions)
        ends = self.first.consumer.end_offsets(partitions)
        for each in partitions:
            line = {
                "at_ms": _now(),
                "topic": each.topic,
                "partition": each.partition,
                "log_start": starts[each],
                "log_end": ends[each],
            }
            self.ends.append(json.dumps(line, separators=(",", ":")))


def generate_live(to: Path, partitions: int = 4) -> HistoryCounts:
    """Raises the errors of `generate`, and GroupNotStable if this machine is too slow."""
    create_empty(to)
    settings: dict[str, Any] = {
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 500,
        "num.partitions": _PARTITIONS,
        "offsets.topic.num.partitions": partitions,
    }
    with (
        Node(data=to / "log", settings=settings, like_kafka=True) as node,
        _live_script(node.bootstrap_servers) as script,
    ):
        _run_script(script)
    record_counts = _count_records(to / "log")
    counts = HistoryCounts(
        groups=1,
        records=record_counts[CONSUMER_OFFSETS],
        events=record_counts[KOHORT_EVENTS],
        rebalances=len(script.labels.rebalances),
        pathologies=0,
        look_alikes=len(script.labels.look_alikes),
    )
    write_lines(to / "ends.jsonl", script.ends)
    write_lines(to / "truth.jsonl", script.labels.lines())
    (to / "README.md").write_text(live_readme_of(counts), "utf-8")
    return counts


@contextmanager
def _live_script(servers: str) -> Iterator[LiveScript]:
    script = LiveScript(servers)
    try:
        yield script
    finally:
        for member in script.members:
            member.close()


def _run_script(script: LiveScript) -> None:
    script.labels.groups.append(
        GroupLabel(group_id=_GROUP, scenario="real", protocol_type="consumer", topics=(_TOPIC,))
    )
    script.step(Trigger.MEMBER_JOINED, lambda: script.join(script.first))
    second = KohortMember(script.servers, "billing-2")
    script.step(Trigger.MEMBER_JOINED, lambda: script.join(second))
    member_type = LibrdkafkaMember if find_spec("confluent_kafka") else KohortMember
    third: LiveMember = member_type(script.servers, "billing-3")
    script.step(Trigger.MEMBER_JOINED, lambda: script.join(third))
    script.step(Trigger.LEADER_REJOINED, lambda: script.enforce(script.first))
    script.step(Trigger.MEMBER_LEFT, lambda: script.leave(second))
    fourth = KohortMember(script.servers, "billing-4")
    script.step(Trigger.MEMBER_JOINED, lambda: script.join(fourth))
    died = _now()
    # Its last heartbeat was just before it died, so the session lasts for at least another half.
    script.step(Trigger.SESSION_EXPIRED, lambda: script.kill(fourth))
    script.labels.look_alikes.append(
        LookAlikeLabel(
            resembles="crash-loop",
            group_id=_GROUP,
            from_ms=died,
            to_ms=_now(),
            subject=fourth.client_id,
            what="dies once, and does not come back",
        )
    )
    script.step(Trigger.MEMBER_LEFT, lambda: script.leave(third))
    script.step(
        Trigger.MEMBER_LEFT, lambda: script.leave(script.first), ending=RebalanceResult.EMPTY
    )


def _producer(servers: str) -> Callable[[], None]:
    if not find_spec("confluent_kafka"):
        return lambda: None
    from confluent_kafka import Producer  # noqa: PLC0415  # optional

    producer = Producer({"bootstrap.servers": servers, **_NO_LOGS})

    def produce() -> None:
        for number in range(_RECORDS):
            producer.produce(_TOPIC, value=b"%d" % number, partition=number % _PARTITIONS)
        left = producer.flush(_TIMEOUT_S)
        if left:
            raise GroupNotStable(f"{left} records could not be produced")

    return produce


def _count_records(directory: Path) -> dict[Topic, int]:
    """The number of records of each topic, after the node has stopped."""
    catalog, _ = Catalog.open(directory, _now())
    counts: dict[Topic, int] = {}
    for topic in catalog.topics:
        logs = (catalog.partition(topic.name, each) for each in range(topic.partition_count))
        counts[topic.name] = sum(log.end_offset for log in logs if log is not None)
    catalog.close(_now())
    return counts


def _identity(client_id: str, member_id: MemberId) -> MemberInfo:
    return MemberInfo(
        member_id=member_id, instance_id=None, client_id=client_id, client_host="/127.0.0.1"
    )


def _now() -> Millis:
    return Millis(time.time_ns() // 1_000_000)
