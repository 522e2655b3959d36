"""Formats outcomes for traces, one line per value, in a fixed order.

Events come first, then state changes, records, replies and timers. Default values are omitted:
protocol type `consumer`, session timeout 10s, rebalance timeout 60s, a client id that is the member
id without its number, client host `h`.
"""

import re
from collections.abc import Callable, Iterable
from typing import assert_never

from kohort.coordinator import events, records, replies
from kohort.coordinator.commands import Ticket
from kohort.coordinator.groups.classic.classic_member import ClassicMember
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.outcome import Outcome, TimerKey
from kohort.types import ErrorCode, GroupId, MemberId, Millis, Partition, Topic
from tests.coordinator.trace_syntax import (
    format_assignment,
    format_millis,
    format_subscription,
    format_topic,
)

NameOf = Callable[[Ticket], str]


def format_outcome(outcome: Outcome, now: Millis, wall: Millis, name_of: NameOf) -> list[str]:
    """`now` is the time of timers, `wall` that of the wall clock."""
    lines: list[str] = []
    changes = [event for event in outcome.events if isinstance(event, events.StateChanged)]
    for event in outcome.events:
        assert event.at == wall, f"event with another timestamp: {event}"
        if not isinstance(event, events.StateChanged):
            lines += _note(event)
    lines += [f"state {_group(each.group_id)} {each.before} -> {each.after}" for each in changes]
    lines += [
        f"record {format_record(record)}" for record in records.expand_columns(outcome.records)
    ]
    for reply in outcome.replies:
        lines += _reply(reply, name_of)
    lines += [_timer(key, outcome.timers[key], now) for key in sorted(outcome.timers)]
    return lines


def _timer(key: TimerKey, delay_ms: Millis | None, now: Millis) -> str:
    return f"timer - {key}" if delay_ms is None else f"timer + {key} @{now + delay_ms}"


def _group(group_id: GroupId) -> str:
    return group_id or '""'


def _join(*parts: str | None) -> str:
    return " ".join(part for part in parts if part)


def _option(name: str, text: object, default: object = None) -> str | None:
    return None if text is None or text == default else f"{name}={text}"


def _quoted(reason: str | None) -> str | None:
    return None if reason is None else f'reason="{reason}"'


def _ids(member_ids: Iterable[MemberId]) -> str:
    return ",".join(member_ids) or "-"


# Events


def format_member(member: events.MemberInfo | None) -> str:
    return "-" if member is None else member.member_id + _format_identity(member)


def _format_identity(
    member: events.MemberInfo
    | ClassicMember
    | records.ClassicGroupMember
    | replies.MemberDescription,
) -> str:
    """The instance id, and the client unless it follows from the member id."""
    instance = "" if member.instance_id is None else f"/{member.instance_id}"
    is_default = (
        member.client_id == re.sub(r"-\d+$", "", member.member_id) and member.client_host == "h"
    )
    return instance if is_default else f"{instance}({member.client_id}@{member.client_host})"


def _note(event: events.GroupEvent) -> list[str]:  # noqa: C901  # a flat table
    match event:
        case events.RebalanceStarted():
            return [_started(event)]
        case events.RebalanceEnded():
            return _ended(event)
        case events.MemberIdIssued():
            text = f"member-id-issued {_group(event.group_id)} {format_member(event.party)}"
        case events.MemberJoined():
            head = f"member-joined {_group(event.group_id)} {format_member(event.party)}"
            text = _join(head, _quoted(event.client_reason))
        case events.MemberGone():
            member = format_member(event.party)
            head = f"member-gone {_group(event.group_id)} {member} {event.departure}"
            text = _join(head, _quoted(event.client_reason))
        case events.InstanceReplaced():
            became = f"{event.old_member_id} -> {format_member(event.party)}"
            suffix = "without-rebalance" if event.is_quiet else None
            text = _join(f"instance-replaced {_group(event.group_id)} {became}", suffix)
        case events.PendingExpired():
            text = f"pending-expired {_group(event.group_id)} {event.member_id}"
        case events.CommitRefused():
            text = _join(
                f"commit-refused {_group(event.group_id)} {event.member_id or '-'}",
                _option("instance", event.instance_id),
                f"gen={event.generation} {event.error.name}",
            )
        case events.OffsetsExpired():
            gone = (f"{topic}:{partition}" for topic, partition in event.partitions)
            text = _join(f"offsets-expired {_group(event.group_id)}", *gone)
        case events.GroupDeleted():
            expired = "expired" if event.is_expired else None
            text = _join(f"group-deleted {_group(event.group_id)}", expired)
        case events.AppendFailed():
            text = f"not-kept {','.join(map(_group, event.group_ids)) or '-'} {event.error.name}"
        case events.JoinPhaseExtended():
            text = f"join-phase-extended {_group(event.group_id)}"
        case events.StateChanged():
            raise AssertionError("state changes are printed separately")
        case _:
            assert_never(event)
    return [f"event {text}"]


def _started(event: events.RebalanceStarted) -> str:
    return _join(
        f"event rebalance-started {_group(event.group_id)} gen={event.generation} {event.trigger}",
        f"by={format_member(event.initiator)} from={event.state_before}",
        f"waits-for={_ids(event.waited_for)}",
        _quoted(event.client_reason),
    )


def _ended(event: events.RebalanceEnded) -> list[str]:
    joined = None
    if event.join_ended_ms is not None:
        joined = f"joined={event.join_ended_ms}({event.join_ended_by})"
    head = _join(
        f"event rebalance-ended {_group(event.group_id)} {event.ending}",
        f"gen={event.generation_before}->{event.generation} {event.trigger}",
        f"by={format_member(event.initiator)} from={event.state_before}",
        _quoted(event.client_reason),
    )
    result = _join(
        f"started={event.started_ms}",
        joined,
        _option("type", event.protocol_type, "consumer"),
        _option("protocol", event.protocol),
        _option("leader", event.leader),
    )
    lines = [f"  {format_member(each.party)} {_part(each)}" for each in event.participants]
    lines += [f"  {format_member(each.party)} removed={each.departure}" for each in event.removals]
    return [head, f"  {result}", *lines]


def _part(each: events.RebalanceParticipant) -> str:
    return _join(
        f"join={'-' if each.join_took_ms is None else each.join_took_ms}",
        f"sync={'-' if each.sync_took_ms is None else each.sync_took_ms}",
        _option("had", format_assignment(each.had), ""),
        _option("got", format_assignment(each.got), ""),
    )


# Records


def format_record(record: records.OneRecord) -> str:
    match record:
        case records.ClassicGroupMetadata():
            return _join(
                f"group-metadata {_group(record.group_id)} gen={record.generation}",
                _option("type", record.protocol_type or "-", "consumer"),
                _option("protocol", record.protocol),
                _option("leader", record.leader),
                f"since={record.state_since_ms}",
                *(format_stored_member(member) for member in record.members),
            )
        case records.GroupRemoved():
            return f"group-removed {_group(record.group_id)}"
        case records.OffsetCommitted():
            return _join(
                f"offset {_group(record.group_id)} {format_offset(record)}",
                f"at={record.commit_ms}",
                _option("expires", record.expire_ms),
                _option("pid", record.producer_id),
                _option("epoch", record.producer_epoch),
            )
        case records.OffsetRemoved():
            return f"offset-removed {_group(record.group_id)} {record.topic}:{record.partition}"
        case records.TransactionEnded():
            return f"txn-ended {record.producer_id} {'commit' if record.is_commit else 'abort'}"
        case _:
            assert_never(record)


def format_stored_member(member: records.ClassicGroupMember) -> str:
    assigned = format_assignment(member.assignment)
    return (
        member.member_id + _format_identity(member) + _timeouts(member) + _content(member, assigned)
    )


def _timeouts(member: "records.ClassicGroupMember | ClassicMember") -> str:
    session_ms, rebalance_ms = member.session_timeout_ms, member.rebalance_timeout_ms
    if (session_ms, rebalance_ms) == (10_000, 60_000):
        return ""
    return f"{{{format_millis(session_ms)},{format_millis(rebalance_ms)}}}"


def _content(member: records.ClassicGroupMember, assigned: str) -> str:
    return format_subscription(member.subscription) + (f"={assigned}" if assigned else "")


def format_offset(offset: "records.OffsetCommitted | replies.FetchedOffset") -> str:
    """`t1:0=5`, then `/3` for a leader epoch and `(text)` for metadata."""
    head = f"{format_topic(offset.topic, offset.topic_id)}:{offset.partition}={offset.offset}"
    epoch = "" if offset.leader_epoch == -1 else f"/{offset.leader_epoch}"
    return head + epoch + (f"({offset.metadata})" if offset.metadata else "")


# Replies


def _reply(reply: replies.Reply, name_of: NameOf) -> list[str]:  # noqa: C901  # a flat table
    name = name_of(reply.ticket)
    match reply:
        case replies.RequestRefused():
            member = _option("member", reply.member_id, "")
            return [_join(f"refused {name} {reply.error.name}", member)]
        case replies.Joined():
            return [_joined(reply, name)]
        case replies.Synced():
            got = _option("got", format_assignment(reply.assignment), "")
            return [_join(f"synced {name}", *_protocol(reply), got)]
        case replies.HeartbeatAccepted():
            return [f"accepted {name}"]
        case replies.LeaveAnswered():
            leavers = (_left(each) for each in reply.members)
            return [_join(f"left {name}", *leavers)]
        case replies.CommitAnswered():
            return [_join(f"committed {name}", *map(_result, reply.results))]
        case replies.TransactionClosed():
            return [f"closed {name}"]
        case replies.OffsetsFetched():
            return [_join(f"fetched {name}", *map(_fetched, reply.offsets))]
        case replies.DeleteOffsetsAnswered():
            return [_join(f"offsets-deleted {name}", *map(_result, reply.results))]
        case replies.GroupsDescribed():
            lines = [line for group in reply.groups for line in _described(group)]
            return [f"described {name}", *lines]
        case replies.GroupsListed():
            return [f"listed {name}", *map(_listed, reply.groups)]
        case replies.DeleteGroupsAnswered():
            results = (f"{_group(each.group_id)}={each.error.name}" for each in reply.results)
            return [_join(f"groups-deleted {name}", *results)]
        case _:
            assert_never(reply)


def _protocol(reply: replies.Joined | replies.Synced) -> tuple[str | None, str | None]:
    type_ = _option("type", reply.protocol_type or "-", "consumer")
    return type_, _option("protocol", reply.protocol or "-")


def _joined(reply: replies.Joined, name: str) -> str:
    members = ",".join(each.member_id + _joined_member(each) for each in reply.members)
    return _join(
        f"joined {name} member={reply.member_id} gen={reply.generation} leader={reply.leader}",
        _option("members", members, ""),
        *_protocol(reply),
        "skip-assignment" if reply.skip_assignment else None,
    )


def _joined_member(each: replies.JoinedMember) -> str:
    instance = "" if each.instance_id is None else f"/{each.instance_id}"
    return instance + format_subscription(each.metadata)


def _left(each: replies.Left) -> str:
    instance = "" if each.instance_id is None else f"/{each.instance_id}"
    return f"{each.member_id}{instance}={each.error.name}"


def _result(each: replies.PartitionResult) -> str:
    error = "" if each.error is ErrorCode.NONE else f"={each.error.name}"
    return f"{format_topic(each.topic, each.topic_id)}:{each.partition}{error}"


def _fetched(each: replies.FetchedOffset) -> str:
    if each.error is ErrorCode.NONE:
        return format_offset(each)
    head = f"{format_topic(each.topic, each.topic_id)}:{each.partition}={each.error.name}"
    unusual = (each.offset, each.leader_epoch, each.metadata) != (-1, -1, "")
    return f"{head} but {format_offset(each)}" if unusual else head


def _described(group: replies.GroupDescription) -> list[str]:
    head = _join(
        f"  {_group(group.group_id)} {group.state}",
        _option("type", group.protocol_type or "-", "consumer"),
        _option("protocol", group.protocol, ""),
        None if group.error is ErrorCode.NONE else group.error.name,
    )
    return [head, *(f"    {_described_member(member)}" for member in group.members)]


def _described_member(member: replies.MemberDescription) -> str:
    assigned = format_assignment(member.assignment)
    metadata = format_subscription(member.metadata)
    return (
        member.member_id
        + _format_identity(member)
        + metadata
        + (f"={assigned}" if assigned else "")
    )


def _listed(group: replies.GroupOverview) -> str:
    type_ = _option("type", group.protocol_type or "-", "consumer")
    return _join(f"  {_group(group.group_id)} {group.type} {group.state}", type_)


# Groups


def format_group(group: ClassicGroup, name_of: NameOf) -> list[str]:
    """Format the state of a group: its members, then its offsets."""
    head = _join(
        f"{_group(group.group_id)} {group.state} gen={group.generation}",
        _option("type", group.protocol_type or "-", "consumer"),
        _option("protocol", group.protocol),
        _option("leader", group.leader),
        f"since={group.state_since_ms}",
    )
    lines = [f"  {_shown_member(member, name_of)}" for member in group.members.values()]
    lines += [f"  {member_id} pending" for member_id in group.pending_join_members]
    lines += [f"  offset {format_offset(each)}" for each in group.offsets]
    for (topic, partition), waiting in group.offsets.pending.items():
        lines += [_shown_pending(topic, partition, pid) for pid in waiting]
    return [head, *lines]


def _shown_member(member: ClassicMember, name_of: NameOf) -> str:
    assigned = format_assignment(member.assignment)
    protocols = ",".join(p.name + format_subscription(p.metadata) for p in member.protocols)
    return _join(
        member.member_id + _format_identity(member) + _timeouts(member) + f" {protocols}",
        _option("has", assigned, ""),
        None if member.join_ticket is None else f"join={name_of(member.join_ticket)}",
        None if member.sync_ticket is None else f"sync={name_of(member.sync_ticket)}",
        "new" if member.is_new else None,
    )


def _shown_pending(topic: Topic, partition: Partition, producer_id: int) -> str:
    return f"  pending {topic}:{partition} pid={producer_id}"
