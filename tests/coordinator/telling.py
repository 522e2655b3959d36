"""Prints what the machine said, from its values, one short line each, in a fixed order.

Notes come first, then changes of state, records, replies and timers. What has its usual value is
left out: `consumer` as protocol type, sessions of 10s and rebalances of 60s, a client id that is
the member id without its number, a client host `h`.
"""

import re
from collections.abc import Callable, Iterable
from typing import assert_never

from kohort.coordinator import notes, records, replies
from kohort.coordinator.commands import Ticket
from kohort.coordinator.group import Group, Member
from kohort.coordinator.outcome import Outcome, TimerKey
from kohort.types import ErrorCode, GroupId, MemberId, Millis, Partition, Topic
from tests.coordinator.spelling import (
    tell_assignment,
    tell_millis,
    tell_subscription,
    tell_topic,
)

NameOf = Callable[[Ticket], str]


def tell(outcome: Outcome, now: Millis, name_of: NameOf) -> list[str]:
    lines: list[str] = []
    changes = [note for note in outcome.notes if isinstance(note, notes.StateChanged)]
    for note in outcome.notes:
        assert note.at == now, f"a note of another moment: {note}"
        if not isinstance(note, notes.StateChanged):
            lines += _note(note)
    lines += [f"state {_group(each.group_id)} {each.before} -> {each.after}" for each in changes]
    lines += [f"record {tell_record(record)}" for record in records.one_by_one(outcome.records)]
    for reply in outcome.replies:
        lines += _reply(reply, name_of)
    lines += [_timer(key, outcome.timers[key]) for key in sorted(outcome.timers)]
    return lines


def _timer(key: TimerKey, deadline: Millis | None) -> str:
    return f"timer - {key}" if deadline is None else f"timer + {key} @{deadline}"


def _group(group_id: GroupId) -> str:
    return group_id or '""'


def _words(*words: str | None) -> str:
    return " ".join(word for word in words if word)


def _option(name: str, text: object, usual: object = None) -> str | None:
    return None if text is None or text == usual else f"{name}={text}"


def _quoted(reason: str | None) -> str | None:
    return None if reason is None else f'reason="{reason}"'


def _ids(member_ids: Iterable[MemberId]) -> str:
    return ",".join(member_ids) or "-"


# Notes


def tell_party(party: notes.Party | None) -> str:
    return "-" if party is None else party.member_id + _person(party)


def _person(who: "notes.Party | Member | records.FormedMember | replies.DescribedMember") -> str:
    """What is behind a member id: its instance, and its client where the id does not tell."""
    instance = "" if who.instance_id is None else f"/{who.instance_id}"
    is_usual = who.client_id == re.sub(r"-\d+$", "", who.member_id) and who.client_host == "h"
    return instance if is_usual else f"{instance}({who.client_id}@{who.client_host})"


def _note(note: notes.Note) -> list[str]:  # noqa: C901  # a flat table
    match note:
        case notes.RebalanceStarted():
            return [_started(note)]
        case notes.RebalanceEnded():
            return _ended(note)
        case notes.MemberIdIssued():
            text = f"member-id-issued {_group(note.group_id)} {tell_party(note.party)}"
        case notes.MemberJoined():
            head = f"member-joined {_group(note.group_id)} {tell_party(note.party)}"
            text = _words(head, _quoted(note.client_reason))
        case notes.MemberGone():
            head = f"member-gone {_group(note.group_id)} {tell_party(note.party)} {note.departure}"
            text = _words(head, _quoted(note.client_reason))
        case notes.InstanceReplaced():
            became = f"{note.old_member_id} -> {tell_party(note.party)}"
            quietly = "quietly" if note.is_quiet else None
            text = _words(f"instance-replaced {_group(note.group_id)} {became}", quietly)
        case notes.PendingExpired():
            text = f"pending-expired {_group(note.group_id)} {note.member_id}"
        case notes.CommitRefused():
            text = _words(
                f"commit-refused {_group(note.group_id)} {note.member_id or '-'}",
                _option("instance", note.instance_id),
                f"gen={note.generation} {note.error.name}",
            )
        case notes.OffsetsExpired():
            gone = (f"{topic}:{partition}" for topic, partition in note.partitions)
            text = _words(f"offsets-expired {_group(note.group_id)}", *gone)
        case notes.GroupDeleted():
            expired = "expired" if note.is_expired else None
            text = _words(f"group-deleted {_group(note.group_id)}", expired)
        case notes.NotKept():
            text = f"not-kept {','.join(map(_group, note.group_ids)) or '-'} {note.error.name}"
        case notes.NobodyRejoined():
            text = f"nobody-rejoined {_group(note.group_id)}"
        case notes.StateChanged():
            raise AssertionError("changes of state have their own place")
        case _:
            assert_never(note)
    return [f"note {text}"]


def _started(note: notes.RebalanceStarted) -> str:
    return _words(
        f"note rebalance-started {_group(note.group_id)} gen={note.generation} {note.trigger}",
        f"by={tell_party(note.culprit)} from={note.state_before}",
        f"waits-for={_ids(note.waited_for)}",
        _quoted(note.client_reason),
    )


def _ended(note: notes.RebalanceEnded) -> list[str]:
    joined = None
    if note.join_ended_ms is not None:
        joined = f"joined={note.join_ended_ms}({note.join_ended_by})"
    head = _words(
        f"note rebalance-ended {_group(note.group_id)} {note.ending}",
        f"gen={note.generation_before}->{note.generation} {note.trigger}",
        f"by={tell_party(note.culprit)} from={note.state_before}",
        _quoted(note.client_reason),
    )
    result = _words(
        f"started={note.started_ms}",
        joined,
        _option("type", note.protocol_type, "consumer"),
        _option("protocol", note.protocol),
        _option("leader", note.leader),
    )
    lines = [f"  {tell_party(each.party)} {_part(each)}" for each in note.participants]
    lines += [f"  {tell_party(each.party)} removed={each.departure}" for each in note.removals]
    return [head, f"  {result}", *lines]


def _part(each: notes.Participant) -> str:
    return _words(
        f"join={'-' if each.join_took_ms is None else each.join_took_ms}",
        f"sync={'-' if each.sync_took_ms is None else each.sync_took_ms}",
        _option("had", tell_assignment(each.had), ""),
        _option("got", tell_assignment(each.got), ""),
    )


# Records


def tell_record(record: records.OneRecord) -> str:
    match record:
        case records.GenerationFormed():
            return _words(
                f"formed {_group(record.group_id)} gen={record.generation}",
                _option("type", record.protocol_type or "-", "consumer"),
                _option("protocol", record.protocol),
                _option("leader", record.leader),
                f"since={record.state_since_ms}",
                *(tell_formed_member(member) for member in record.members),
            )
        case records.GroupRemoved():
            return f"group-removed {_group(record.group_id)}"
        case records.OffsetCommitted():
            return _words(
                f"offset {_group(record.group_id)} {tell_offset(record)}",
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


def tell_formed_member(member: records.FormedMember) -> str:
    assigned = tell_assignment(member.assignment)
    return member.member_id + _person(member) + _timeouts(member) + _content(member, assigned)


def _timeouts(member: "records.FormedMember | Member") -> str:
    session_ms, rebalance_ms = member.session_timeout_ms, member.rebalance_timeout_ms
    if (session_ms, rebalance_ms) == (10_000, 60_000):
        return ""
    return f"{{{tell_millis(session_ms)},{tell_millis(rebalance_ms)}}}"


def _content(member: records.FormedMember, assigned: str) -> str:
    return tell_subscription(member.subscription) + (f"={assigned}" if assigned else "")


def tell_offset(kept: "records.OffsetCommitted | replies.FetchedOffset") -> str:
    """`t1:0=5`, then `/3` for a leader epoch and `(text)` for metadata."""
    head = f"{tell_topic(kept.topic, kept.topic_id)}:{kept.partition}={kept.offset}"
    epoch = "" if kept.leader_epoch == -1 else f"/{kept.leader_epoch}"
    return head + epoch + (f"({kept.metadata})" if kept.metadata else "")


# Replies


def _reply(reply: replies.Reply, name_of: NameOf) -> list[str]:  # noqa: C901  # a flat table
    name = name_of(reply.ticket)
    match reply:
        case replies.Refused():
            member = _option("member", reply.member_id, "")
            return [_words(f"refused {name} {reply.error.name}", member)]
        case replies.Joined():
            return [_joined(reply, name)]
        case replies.Synced():
            got = _option("got", tell_assignment(reply.assignment), "")
            return [_words(f"synced {name}", *_protocol(reply), got)]
        case replies.HeartbeatHeard():
            return [f"heard {name}"]
        case replies.LeaveAnswered():
            leavers = (_left(each) for each in reply.members)
            return [_words(f"left {name}", *leavers)]
        case replies.CommitAnswered():
            return [_words(f"committed {name}", *map(_result, reply.results))]
        case replies.TransactionClosed():
            return [f"closed {name}"]
        case replies.OffsetsFetched():
            return [_words(f"fetched {name}", *map(_fetched, reply.offsets))]
        case replies.DeleteOffsetsAnswered():
            return [_words(f"offsets-deleted {name}", *map(_result, reply.results))]
        case replies.GroupsDescribed():
            lines = [line for group in reply.groups for line in _described(group)]
            return [f"described {name}", *lines]
        case replies.GroupsListed():
            return [f"listed {name}", *map(_listed, reply.groups)]
        case replies.DeleteGroupsAnswered():
            results = (f"{_group(each.group_id)}={each.error.name}" for each in reply.results)
            return [_words(f"groups-deleted {name}", *results)]
        case _:
            assert_never(reply)


def _protocol(reply: replies.Joined | replies.Synced) -> tuple[str | None, str | None]:
    type_ = _option("type", reply.protocol_type or "-", "consumer")
    return type_, _option("protocol", reply.protocol or "-")


def _joined(reply: replies.Joined, name: str) -> str:
    members = ",".join(each.member_id + _joined_member(each) for each in reply.members)
    return _words(
        f"joined {name} member={reply.member_id} gen={reply.generation} leader={reply.leader}",
        _option("members", members, ""),
        *_protocol(reply),
        "skip-assignment" if reply.skip_assignment else None,
    )


def _joined_member(each: replies.JoinedMember) -> str:
    instance = "" if each.instance_id is None else f"/{each.instance_id}"
    return instance + tell_subscription(each.metadata)


def _left(each: replies.Left) -> str:
    instance = "" if each.instance_id is None else f"/{each.instance_id}"
    return f"{each.member_id}{instance}={each.error.name}"


def _result(each: replies.PartitionResult) -> str:
    error = "" if each.error is ErrorCode.NONE else f"={each.error.name}"
    return f"{tell_topic(each.topic, each.topic_id)}:{each.partition}{error}"


def _fetched(each: replies.FetchedOffset) -> str:
    if each.error is ErrorCode.NONE:
        return tell_offset(each)
    head = f"{tell_topic(each.topic, each.topic_id)}:{each.partition}={each.error.name}"
    unusual = (each.offset, each.leader_epoch, each.metadata) != (-1, -1, "")
    return f"{head} but {tell_offset(each)}" if unusual else head


def _described(group: replies.DescribedGroup) -> list[str]:
    head = _words(
        f"  {_group(group.group_id)} {group.state}",
        _option("type", group.protocol_type or "-", "consumer"),
        _option("protocol", group.protocol, ""),
        None if group.error is ErrorCode.NONE else group.error.name,
    )
    return [head, *(f"    {_described_member(member)}" for member in group.members)]


def _described_member(member: replies.DescribedMember) -> str:
    assigned = tell_assignment(member.assignment)
    metadata = tell_subscription(member.metadata)
    return member.member_id + _person(member) + metadata + (f"={assigned}" if assigned else "")


def _listed(group: replies.ListedGroup) -> str:
    type_ = _option("type", group.protocol_type or "-", "consumer")
    return _words(f"  {_group(group.group_id)} {group.type} {group.state}", type_)


# Looking inside


def show(group: Group, name_of: NameOf) -> list[str]:
    """What a group is at this moment: its roster, then its offsets."""
    roster = group.roster
    head = _words(
        f"{_group(group.group_id)} {roster.state} gen={roster.generation}",
        _option("type", roster.protocol_type or "-", "consumer"),
        _option("protocol", roster.protocol),
        _option("leader", roster.leader),
        f"since={roster.state_since_ms}",
    )
    lines = [f"  {_shown_member(member, name_of)}" for member in roster.members.values()]
    lines += [f"  {member_id} pending" for member_id in roster.pending]
    lines += [f"  offset {tell_offset(kept)}" for kept in group.offsets]
    for (topic, partition), waiting in group.offsets.pending.items():
        lines += [_shown_pending(topic, partition, pid) for pid in waiting]
    return [head, *lines]


def _shown_member(member: Member, name_of: NameOf) -> str:
    assigned = tell_assignment(member.assignment)
    protocols = ",".join(p.name + tell_subscription(p.metadata) for p in member.protocols)
    return _words(
        member.member_id + _person(member) + _timeouts(member) + f" {protocols}",
        _option("has", assigned, ""),
        None if member.join_ticket is None else f"join={name_of(member.join_ticket)}",
        None if member.sync_ticket is None else f"sync={name_of(member.sync_ticket)}",
        "new" if member.is_new else None,
    )


def _shown_pending(topic: Topic, partition: Partition, producer_id: int) -> str:
    return f"  pending {topic}:{partition} pid={producer_id}"
