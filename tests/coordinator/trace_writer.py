"""Formats commands as lines of a trace, the inverse of `trace_commands`."""

import re
import shlex
from dataclasses import fields
from typing import assert_never

from kohort.coordinator import commands
from kohort.coordinator.commands import Command
from kohort.coordinator.config import GroupConfig
from kohort.wire.consumer_protocol import decode_subscription
from tests.coordinator.trace_syntax import format_assignment, format_topic, is_text


def format_command(command: Command) -> str:  # noqa: C901  # a flat table
    match command:
        case commands.JoinGroup():
            return _join(command)
        case commands.SyncGroup():
            return _sync(command)
        case commands.Heartbeat():
            return _line("heartbeat", command.group_id, command.member_id, *_identity(command))
        case commands.LeaveGroup():
            return _leave(command)
        case commands.CommitOffsets():
            retention = _option("retention", command.retention_ms)
            lacks = _lacks(("missing-group", command.knows_missing_group))
            return _line("commit", *_commit(command), *retention, *lacks)
        case commands.CommitTransactionOffsets():
            producer = f"pid={command.producer_id}", f"epoch={command.producer_epoch}"
            lacks = _lacks(("loading", command.knows_loading))
            return _line("txn-commit", *_commit(command), *producer, *lacks)
        case commands.EndTransaction():
            ending = "commit" if command.is_commit else "abort"
            return _line("end-txn", str(command.producer_id), ending)
        case commands.FetchOffsets():
            stable = ["stable"] if command.require_stable else []
            return _line("fetch", command.group_id, *_topics(command.topics or ()), *stable)
        case commands.FetchManyOffsets():
            raise AssertionError("each fetch has its own line")
        case commands.DeleteOffsets():
            return _line("delete-offsets", command.group_id, *_topics(command.topics))
        case commands.DescribeGroups():
            lacks = _lacks(("missing-group", command.knows_missing_group))
            return _line("describe", *command.group_ids, *lacks)
        case commands.ListGroups():
            return _line(
                "list", *_filter("states", command.states), *_filter("types", command.types)
            )
        case commands.DeleteGroups():
            members = ["with-members"] if command.removes_members else []
            return _line("delete-groups", *command.group_ids, *members)
        case commands.TopicsChanged():
            return _line(
                "topics-deleted", *(format_topic(t.topic, t.topic_id) for t in command.deleted)
            )
        case commands.RebalanceGroup():
            return _line("rebalance", command.group_id)
        case commands.Shutdown():
            return "shutdown"
        case commands.TimerFired():
            raise AssertionError("timers fire when the time advances")
        case _:
            assert_never(command)


def format_config(config: GroupConfig) -> str:
    """The settings that differ from the defaults."""
    usual = GroupConfig()
    return _line(
        "config",
        *(
            f"{each.name.replace('_', '.')}={getattr(config, each.name)}"
            for each in fields(GroupConfig)
            if getattr(config, each.name) != getattr(usual, each.name)
        ),
    )


def _join(command: commands.JoinGroup) -> str:
    is_known = bool(command.member_id)
    return _line(
        "join",
        command.group_id,
        command.client_id,
        *_protocols(command.protocols),
        f"member={command.member_id}" if is_known else f"fresh={command.fresh_member_id}",
        *_option("instance", command.instance_id),
        f"session={command.session_timeout_ms}",
        f"rebalance={command.rebalance_timeout_ms}",
        *_option("type", command.protocol_type, usual="consumer"),
        *_option("host", command.client_host, usual="h"),
        *_option("reason", command.reason),
        *_lacks(
            ("id-required", command.knows_member_id_required),
            ("skip", command.knows_skip_assignment),
        ),
    )


def _protocols(offered: tuple[commands.Protocol, ...]) -> list[str]:
    """Names, then the common topics; other metadata is in brackets."""
    words = [p.name + (f"({p.metadata.decode()})" if is_text(p.metadata) else "") for p in offered]
    topics = {decode_subscription(p.metadata).topics for p in offered if not is_text(p.metadata)}
    assert len(topics) <= 1, "cannot format protocols with different subscriptions"
    return words + [f"topics={','.join(each)}" for each in topics]


def _sync(command: commands.SyncGroup) -> str:
    protocol = _option("type", command.protocol_type) + _option("protocol", command.protocol)
    shares = (f"{s.member_id}={format_assignment(s.assignment)}" for s in command.assignments)
    who = command.group_id, command.member_id, *_identity(command)
    return _line("sync", *who, *protocol, *shares)


def _leave(command: commands.LeaveGroup) -> str:
    reasons = {leaver.reason for leaver in command.members}
    assert len(reasons) == 1, "cannot format members with different reasons"
    leavers = (
        each.member_id + ("" if each.instance_id is None else f"/{each.instance_id}")
        for each in command.members
    )
    return _line("leave", command.group_id, *leavers, *_option("reason", reasons.pop()))


def _commit(command: commands.CommitOffsets | commands.CommitTransactionOffsets) -> list[str]:
    member = [command.member_id] if command.member_id else []
    return [command.group_id, *member, *_identity(command), *map(_offset, command.offsets)]


def _identity(
    command: commands.SyncGroup
    | commands.Heartbeat
    | commands.CommitOffsets
    | commands.CommitTransactionOffsets,
) -> list[str]:
    return [f"gen={command.generation}", *_option("instance", command.instance_id)]


def _offset(each: commands.OffsetToCommit) -> str:
    head = f"{format_topic(each.topic, each.topic_id)}:{each.partition}={each.offset}"
    epoch = "" if each.leader_epoch == -1 else f"/{each.leader_epoch}"
    metadata = "null" if each.metadata is None else each.metadata
    return head + epoch + (f"({metadata})" if metadata else "")


def _topics(topics: tuple[commands.RequestedTopic, ...]) -> list[str]:
    return [
        f"{format_topic(each.topic, each.topic_id)}:{','.join(map(str, each.partitions))}"
        for each in topics
    ]


def _option(name: str, value: object, usual: object = None) -> list[str]:
    return [] if value in (None, usual) else [f"{name}={value}"]


def _lacks(*known: tuple[str, bool]) -> list[str]:
    """The features that an older client lacks."""
    lacking = [name for name, is_known in known if not is_known]
    return [f"lacks={','.join(lacking)}"] if lacking else []


def _filter(name: str, values: tuple[str, ...]) -> list[str]:
    return [f"{name}={','.join(values)}"] if values else []


def _line(*words: str) -> str:
    return " ".join(
        word if re.fullmatch(r"[^\s'\"]+", word) else shlex.quote(word) for word in words
    )
