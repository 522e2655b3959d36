"""Parses the lines of a trace to commands, and to records for `given` and `load`."""

import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kohort.coordinator import commands, records
from kohort.coordinator.commands import Ticket
from kohort.types import (
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    ProducerEpoch,
    ProducerId,
)
from tests.coordinator.trace_syntax import (
    assignment,
    millis,
    protocol,
    subscription,
    topic_and_id,
)

_OPTION = re.compile(
    "(as|at|epoch|expires|fresh|gen|host|instance|lacks|leader|member|owned|pid|protocol|reason"
    "|rebalance|retention|session|since|states|topics|type|types)=(.*)",
    re.DOTALL,
)
_SESSION, _REBALANCE = Millis(10_000), Millis(60_000)


@dataclass
class Words:
    """One command line: positional arguments and options; each must be consumed."""

    bare: list[str] = field(default_factory=list)
    options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, line: str) -> "Words":
        words = cls()
        for word in shlex.split(line):
            option = _OPTION.fullmatch(word)
            if option is None:
                words.bare.append(word)
            else:
                words.options[option[1]] = option[2]
        return words

    def next(self) -> str:
        return self.bare.pop(0)

    def rest(self) -> list[str]:
        taken, self.bare = self.bare, []
        return taken

    def option(self, name: str) -> str | None:
        return self.options.pop(name, None)

    def generation(self) -> Generation:
        return Generation(int(self.options.pop("gen", "-1")))

    def instance(self) -> InstanceId | None:
        text = self.option("instance")
        return None if text is None else InstanceId(text)

    def lacks(self, *known: str) -> list[bool]:
        """For each feature, whether the client lacks it."""
        lacking = set(filter(None, (self.option("lacks") or "").split(",")))
        assert lacking <= set(known), f"unknown features {lacking}"
        return [each in lacking for each in known]

    def finish(self) -> None:
        assert not self.bare, f"unexpected arguments {self.bare}"
        assert not self.options, f"unexpected options {self.options}"


def join(words: Words, ticket: Ticket, client: str, fresh: str) -> commands.JoinGroup:
    metadata = subscription(words.option("topics"), words.option("owned"))
    no_id_required, no_skip = words.lacks("id-required", "skip")
    return commands.JoinGroup(
        ticket=ticket,
        group_id=GroupId(words.next()),
        member_id=MemberId(words.option("member") or ""),
        fresh_member_id=MemberId(words.option("fresh") or fresh),
        instance_id=words.instance(),
        client_id=client,
        client_host=words.option("host") or "h",
        session_timeout_ms=_duration(words, "session", _SESSION),
        rebalance_timeout_ms=_duration(words, "rebalance", _REBALANCE),
        protocol_type=_or_default(words.option("type"), "consumer"),
        protocols=tuple(protocol(word, metadata) for word in _protocols(words)),
        reason=words.option("reason"),
        knows_member_id_required=not no_id_required,
        knows_skip_assignment=not no_skip,
    )


def _protocols(words: Words) -> list[str]:
    named = words.rest()[1:]
    return [] if named == ["-"] else named or ["range"]


def _or_default(text: str | None, default: str) -> str:
    return default if text is None else text


def _duration(words: Words, name: str, default: Millis) -> Millis:
    text = words.option(name)
    return default if text is None else millis(text)


def sync(words: Words, ticket: Ticket) -> commands.SyncGroup:
    group_id, member_id = GroupId(words.next()), MemberId(words.next())
    given = (word.partition("=") for word in words.rest())
    return commands.SyncGroup(
        ticket=ticket,
        group_id=group_id,
        member_id=member_id,
        instance_id=words.instance(),
        generation=words.generation(),
        protocol_type=words.option("type"),
        protocol=words.option("protocol"),
        assignments=tuple(
            commands.MemberAssignment(member_id=MemberId(to), assignment=assignment(text))
            for to, _, text in given
        ),
    )


def heartbeat(words: Words, ticket: Ticket) -> commands.Heartbeat:
    return commands.Heartbeat(
        ticket=ticket,
        group_id=GroupId(words.next()),
        member_id=MemberId(words.next()),
        instance_id=words.instance(),
        generation=words.generation(),
    )


def leave(words: Words, ticket: Ticket) -> commands.LeaveGroup:
    group_id, reason = GroupId(words.next()), words.option("reason")
    named = (word.partition("/") for word in words.rest())
    return commands.LeaveGroup(
        ticket=ticket,
        group_id=group_id,
        members=tuple(
            commands.LeavingMember(
                member_id=MemberId(member_id),
                instance_id=InstanceId(instance_id) if slash else None,
                reason=reason,
            )
            for member_id, slash, instance_id in named
        ),
    )


def commit(words: Words, ticket: Ticket) -> commands.CommitOffsets:
    retention = words.option("retention")
    (no_missing_group,) = words.lacks("missing-group")
    group_id, member_id = GroupId(words.next()), _maybe_member(words)
    return commands.CommitOffsets(
        ticket=ticket,
        group_id=group_id,
        member_id=member_id,
        instance_id=words.instance(),
        generation=words.generation(),
        offsets=tuple(_offset(word) for word in words.rest()),
        retention_ms=None if retention is None else millis(retention),
        knows_missing_group=not no_missing_group,
    )


def txn_commit(words: Words, ticket: Ticket) -> commands.CommitTransactionOffsets:
    (no_loading,) = words.lacks("loading")
    group_id, member_id = GroupId(words.next()), _maybe_member(words)
    return commands.CommitTransactionOffsets(
        ticket=ticket,
        group_id=group_id,
        producer_id=ProducerId(int(words.options.pop("pid"))),
        producer_epoch=ProducerEpoch(int(words.option("epoch") or "0")),
        member_id=member_id,
        instance_id=words.instance(),
        generation=words.generation(),
        offsets=tuple(_offset(word) for word in words.rest()),
        knows_loading=not no_loading,
    )


def _maybe_member(words: Words) -> MemberId:
    is_named = words.bare and "=" not in words.bare[0]
    return MemberId(words.next() if is_named else "")


def _offset(word: str) -> commands.OffsetToCommit:
    match = re.fullmatch(r"(.+?):(\d+)=(-?\d+)(?:/(-?\d+))?(?:\((.*)\))?", word)
    assert match is not None, f"{word!r} is no offset"
    topic, topic_id = topic_and_id(match[1])
    return commands.OffsetToCommit(
        topic=topic,
        partition=Partition(int(match[2])),
        offset=Offset(int(match[3])),
        leader_epoch=int(match[4] or "-1"),
        metadata=_metadata(match[5] or ""),
        topic_id=topic_id,
    )


def _metadata(text: str) -> str | None:
    letter, star, count = text.partition("*")
    if star:
        return letter * int(count)
    return None if text == "null" else text


def end_txn(words: Words, ticket: Ticket) -> commands.EndTransaction:
    producer_id, ending = ProducerId(int(words.next())), words.next()
    assert ending in ("commit", "abort")
    return commands.EndTransaction(
        ticket=ticket, producer_id=producer_id, is_commit=ending == "commit"
    )


def fetch(words: Words, ticket: Ticket) -> commands.FetchOffsets:
    group_id, asked = GroupId(words.next()), words.rest()
    topics = _topics(word for word in asked if word != "stable")
    return commands.FetchOffsets(
        ticket=ticket, group_id=group_id, topics=topics or None, require_stable="stable" in asked
    )


def delete_offsets(words: Words, ticket: Ticket) -> commands.DeleteOffsets:
    group_id = GroupId(words.next())
    return commands.DeleteOffsets(ticket=ticket, group_id=group_id, topics=_topics(words.rest()))


def _topics(asked: Iterable[str]) -> tuple[commands.RequestedTopic, ...]:
    found = []
    for word in asked:
        named, _, numbers = word.partition(":")
        topic, topic_id = topic_and_id(named)
        found.append(
            commands.RequestedTopic(
                topic=topic,
                partitions=tuple(Partition(int(number)) for number in numbers.split(",")),
                topic_id=topic_id,
            )
        )
    return tuple(found)


def describe(words: Words, ticket: Ticket) -> commands.DescribeGroups:
    (no_missing_group,) = words.lacks("missing-group")
    return commands.DescribeGroups(
        ticket=ticket,
        group_ids=tuple(map(GroupId, words.rest())),
        knows_missing_group=not no_missing_group,
    )


def list_groups(words: Words, ticket: Ticket) -> commands.ListGroups:
    return commands.ListGroups(
        ticket=ticket, states=_listed(words.option("states")), types=_listed(words.option("types"))
    )


def _listed(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(text.split(","))


def delete_groups(words: Words, ticket: Ticket) -> commands.DeleteGroups:
    asked = words.rest()
    return commands.DeleteGroups(
        ticket=ticket,
        group_ids=tuple(GroupId(word) for word in asked if word != "with-members"),
        removes_members="with-members" in asked,
    )


def topics_deleted(words: Words) -> commands.TopicsChanged:
    named = (topic_and_id(word) for word in words.rest())
    return commands.TopicsChanged(
        deleted=tuple(
            commands.DeletedTopic(topic=topic, topic_id=topic_id) for topic, topic_id in named
        )
    )


# Records to load


def record(line: str) -> records.OneRecord:
    words = Words.of(line)
    kind = words.next()
    found = _RECORDS[kind](words)
    words.finish()
    return found


def _group_metadata(words: Words) -> records.ClassicGroupMetadata:
    type_, leader = words.option("type"), words.option("leader")
    return records.ClassicGroupMetadata(
        group_id=GroupId(words.next()),
        protocol_type="" if type_ == "-" else _or_default(type_, "consumer"),
        generation=words.generation(),
        protocol=words.option("protocol"),
        leader=None if leader is None else MemberId(leader),
        state_since_ms=_duration(words, "since", Millis(0)),
        members=tuple(_formed_member(word) for word in words.rest()),
    )


def _formed_member(word: str) -> records.ClassicGroupMember:
    """Parse `a-1/i1(client@host){10s,60s}[topics]=t1:0`; most parts are optional."""
    shape = r"([\w-]+)(?:/([\w-]+))?(?:\((.*)@(.*)\))?(?:\{(\w+),(\w+)\})?(?:\[(.*)\])?(?:=(.*))?"
    match = re.fullmatch(shape, word)
    assert match is not None, f"{word!r} is no member"
    member, instance, client, host, session, rebalance, topics, assigned = match.groups()
    return records.ClassicGroupMember(
        member_id=MemberId(member),
        instance_id=None if instance is None else InstanceId(instance),
        client_id=client or re.sub(r"-\d+$", "", member),
        client_host=host or "h",
        session_timeout_ms=_SESSION if session is None else millis(session),
        rebalance_timeout_ms=_REBALANCE if rebalance is None else millis(rebalance),
        subscription=subscription(topics, None),
        assignment=assignment(assigned or ""),
    )


def _kept_offset(words: Words) -> records.OffsetCommitted:
    group_id, asked = GroupId(words.next()), _offset(words.next())
    expires, pid, epoch = (words.option(name) for name in ("expires", "pid", "epoch"))
    return records.OffsetCommitted(
        group_id=group_id,
        topic=asked.topic,
        partition=asked.partition,
        offset=asked.offset,
        leader_epoch=asked.leader_epoch,
        metadata=asked.metadata or "",
        commit_ms=_duration(words, "at", Millis(0)),
        expire_ms=None if expires is None else millis(expires),
        topic_id=asked.topic_id,
        producer_id=None if pid is None else ProducerId(int(pid)),
        producer_epoch=None if pid is None else ProducerEpoch(int(epoch or "0")),
    )


def _offset_removed(words: Words) -> records.OffsetRemoved:
    group_id = GroupId(words.next())
    topic, _, partition = words.next().partition(":")
    return records.OffsetRemoved(
        group_id=group_id, topic=topic_and_id(topic)[0], partition=Partition(int(partition))
    )


def _txn_ended(words: Words) -> records.TransactionEnded:
    return records.TransactionEnded(
        producer_id=ProducerId(int(words.next())), is_commit=words.next() == "commit"
    )


_RECORDS: dict[str, Callable[[Words], records.OneRecord]] = {
    "group-metadata": _group_metadata,
    "group-removed": lambda words: records.GroupRemoved(group_id=GroupId(words.next())),
    "offset": _kept_offset,
    "offset-removed": _offset_removed,
    "txn-ended": _txn_ended,
}
