"""Writes commands as the lines of a trace: what `asking` reads, the other way round."""

import shlex
from dataclasses import fields
from typing import assert_never

from kohort.coordinator import commands
from kohort.coordinator.commands import Command
from kohort.coordinator.limits import Limits
from kohort.types import InstanceId, Topic, Uuid
from kohort.wire.embedded import decode_subscription
from tests.coordinator.spelling import is_text, tell_assignment, tell_topic


def line_of(command: Command) -> str:  # noqa: C901  # a flat table
    match command:
        case commands.JoinGroup():
            return _join(command)
        case commands.SyncGroup():
            return _sync(command)
        case commands.Heartbeat():
            return _line("heartbeat", command.group_id, command.member_id, *_identity(command))
        case commands.LeaveGroup():
            leavers = (_leaver(leaver) for leaver in command.leavers)
            return _line("leave", command.group_id, *leavers)
        case commands.CommitOffsets():
            return _line("commit", *_commit(command))
        case commands.CommitTransactionOffsets():
            producer = f"pid={command.producer_id}", f"epoch={command.producer_epoch}"
            return _line("txn-commit", *_commit(command), *producer)
        case commands.EndTransaction():
            ending = "commit" if command.is_commit else "abort"
            return _line("end-txn", str(command.producer_id), ending)
        case commands.FetchOffsets():
            stable = ["stable"] if command.require_stable else []
            return _line("fetch", command.group_id, *_topics(command.topics or ()), *stable)
        case commands.DeleteOffsets():
            return _line("delete-offsets", command.group_id, *_topics(command.topics))
        case commands.DescribeGroups():
            lacks = [] if command.knows_missing_group else ["lacks=missing-group"]
            return _line("describe", *command.group_ids, *lacks)
        case commands.ListGroups():
            return _line(
                "list", *_filter("states", command.states), *_filter("types", command.types)
            )
        case commands.DeleteGroups():
            return _line("delete-groups", *command.group_ids)
        case commands.ForgetTopics():
            return _line("forget-topics", *(_named(t.topic, t.topic_id) for t in command.topics))
        case commands.Shutdown():
            return "shutdown"
        case commands.TimerFired():
            raise AssertionError("timers fire by themselves, when time passes")
        case _:
            assert_never(command)


def limits_line(limits: Limits) -> str:
    """The limits that are not the usual ones."""
    usual = Limits()
    return _line(
        "limits",
        *(
            f"{each.name.replace('_', '.')}={getattr(limits, each.name)}"
            for each in fields(Limits)
            if getattr(limits, each.name) != getattr(usual, each.name)
        ),
    )


def _join(command: commands.JoinGroup) -> str:
    is_known = bool(command.member_id)
    lacks = [
        name
        for name, is_known_of in (
            ("id-required", command.knows_member_id_required),
            ("skip", command.knows_skip_assignment),
        )
        if not is_known_of
    ]
    return _line(
        "join",
        command.group_id,
        command.client_id,
        *_protocols(command.protocols),
        f"member={command.member_id}" if is_known else f"fresh={command.fresh_member_id}",
        *_instance(command.instance_id),
        f"session={command.session_timeout_ms}",
        f"rebalance={command.rebalance_timeout_ms}",
        *([] if command.protocol_type == "consumer" else [f"type={command.protocol_type}"]),
        *([f"lacks={','.join(lacks)}"] if lacks else []),
    )


def _protocols(offered: tuple[commands.Protocol, ...]) -> list[str]:
    """Names, then the topics they share; metadata that is no subscription stands in brackets."""
    words = [p.name + (f"({p.metadata.decode()})" if is_text(p.metadata) else "") for p in offered]
    topics = {decode_subscription(p.metadata).topics for p in offered if not is_text(p.metadata)}
    assert len(topics) <= 1, "protocols with different subscriptions cannot be written"
    return words + [f"topics={','.join(each)}" for each in topics]


def _sync(command: commands.SyncGroup) -> str:
    shares = (f"{s.member_id}={tell_assignment(s.assignment)}" for s in command.assignments)
    return _line("sync", command.group_id, command.member_id, *_identity(command), *shares)


def _commit(command: commands.CommitOffsets | commands.CommitTransactionOffsets) -> list[str]:
    member = [command.member_id] if command.member_id else []
    return [command.group_id, *member, *_identity(command), *map(_offset, command.offsets)]


def _identity(
    command: commands.SyncGroup
    | commands.Heartbeat
    | commands.CommitOffsets
    | commands.CommitTransactionOffsets,
) -> list[str]:
    return [f"gen={command.generation}", *_instance(command.instance_id)]


def _instance(instance_id: InstanceId | None) -> list[str]:
    return [] if instance_id is None else [f"instance={instance_id}"]


def _leaver(leaver: commands.Leaver) -> str:
    return leaver.member_id + ("" if leaver.instance_id is None else f"/{leaver.instance_id}")


def _offset(each: commands.OffsetToCommit) -> str:
    head = f"{_named(each.topic, each.topic_id)}:{each.partition}={each.offset}"
    epoch = "" if each.leader_epoch == -1 else f"/{each.leader_epoch}"
    return head + epoch + (f"({each.metadata})" if each.metadata else "")


def _topics(topics: tuple[commands.TopicPartitions, ...]) -> list[str]:
    return [
        f"{_named(each.topic, each.topic_id)}:{','.join(map(str, each.partitions))}"
        for each in topics
    ]


def _named(topic: Topic, topic_id: Uuid) -> str:
    return tell_topic(topic, topic_id)


def _filter(name: str, values: tuple[str, ...]) -> list[str]:
    return [f"{name}={','.join(values)}"] if values else []


def _line(*words: str) -> str:
    return " ".join(shlex.quote(word) if not word or " " in word else word for word in words)
