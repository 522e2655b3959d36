"""Formats the effects of a member, one line each.

Default request timeouts are omitted: 305s for joins, 30s for others.
"""

from typing import Any, assert_never

from kohort.client.member import effects
from kohort.client.member.effects import MemberEffect
from kohort.client.rebalances import Rebalance
from kohort.types import Millis
from kohort.wire.api import (
    k08_offset_commit,
    k09_offset_fetch,
    k10_find_coordinator,
    k11_join_group,
    k12_heartbeat,
    k13_leave_group,
    k14_sync_group,
)
from tests.client.trace_syntax import (
    format_error,
    format_partitions,
    format_positions,
    format_subscription,
    format_topics,
)
from tests.coordinator.trace_syntax import format_assignment, format_millis

KINDS: dict[type, str] = {
    k08_offset_commit.OffsetCommitRequest: "commit",
    k09_offset_fetch.OffsetFetchRequest: "fetch",
    k10_find_coordinator.FindCoordinatorRequest: "find",
    k11_join_group.JoinGroupRequest: "join",
    k12_heartbeat.HeartbeatRequest: "heartbeat",
    k13_leave_group.LeaveGroupRequest: "leave",
    k14_sync_group.SyncGroupRequest: "sync",
}


def format_effect(effect: MemberEffect, name: str) -> str:  # noqa: C901  # a flat table
    """`name` is the name of a request, like join#1."""
    match effect:
        case effects.SendRequest():
            return _send(effect, name)
        case effects.CallListener():
            return f"call {effect.change} {format_partitions(effect.partitions)}"
        case effects.AwaitPoll():
            return "await-poll"
        case effects.RequestPositions():
            revoking = format_partitions(effect.revoking) if effect.revoking else None
            return _words("request-positions", _option("revoking", revoking))
        case effects.WatchTopics():
            return f"watch {format_topics(effect.topics)}"
        case effects.CommitCompleted():
            return _words(f"committed {effect.call_id}", _error(effect.error))
        case effects.CommittedFetched():
            offsets = _error(effect.error) or format_positions(effect.positions)
            return f"committed-offsets {effect.call_id} {offsets}"
        case effects.AutoCommitCompleted():
            offsets = format_positions(effect.positions)
            return _words(f"auto-committed {offsets}", _error(effect.error))
        case effects.RebalanceCompleted():
            return _rebalance(effect.rebalance)
        case effects.MemberFailed():
            return f"failed {format_error(effect.error)}"
        case effects.MemberClosed():
            return "closed"
        case _:
            assert_never(effect)


def _words(*words: str | None) -> str:
    return " ".join(word for word in words if word)


def _option(name: str, text: object, default: object = None) -> str | None:
    return None if text is None or text == default else f"{name}={text}"


def _error(error: Any) -> str | None:
    return None if error is None else format_error(error)


def _send(send: effects.SendRequest, name: str) -> str:
    to = "any" if send.broker is None else send.broker.host
    default_ms = 305_000 if name.startswith("join") else 30_000
    return _words(
        f"send {name} to {to}",
        _body(send.body),
        _option("within", format_millis(send.timeout_ms), format_millis(default_ms)),
    )


def _body(body: Any) -> str:
    match body:
        case k10_find_coordinator.FindCoordinatorRequest():
            return f"{','.join(body.coordinator_keys)}"
        case k11_join_group.JoinGroupRequest():
            offers = (f"{each.name}{format_subscription(each.metadata)}" for each in body.protocols)
            return _words(_who(body), *offers, f'reason="{body.reason}"')
        case k14_sync_group.SyncGroupRequest():
            given = (
                f"{e.member_id}={format_assignment(e.assignment) or '-'}" for e in body.assignments
            )
            return _words(_who(body), f"gen={body.generation_id}", body.protocol_name, *given)
        case k12_heartbeat.HeartbeatRequest():
            return _words(_who(body), f"gen={body.generation_id}")
        case k13_leave_group.LeaveGroupRequest():
            return _words(*(f'{each.member_id} reason="{each.reason}"' for each in body.members))
        case k08_offset_commit.OffsetCommitRequest():
            generation = _option("gen", body.generation_id_or_member_epoch, -1)
            return _words(_who(body), generation, _committed(body))
        case k09_offset_fetch.OffsetFetchRequest():
            (group,) = body.groups
            requested = (
                f"{t.name}:{','.join(map(str, t.partition_indexes))}" for t in group.topics or ()
            )
            return _words(";".join(requested), None if body.require_stable else "unstable")
        case _:
            raise AssertionError(f"a member does not send {body}")


def _who(body: Any) -> str | None:
    instance = "" if body.group_instance_id is None else f"/{body.group_instance_id}"
    return f"{body.member_id}{instance}" or None


def _committed(body: k08_offset_commit.OffsetCommitRequest) -> str:
    return " ".join(
        f"{topic.name}:{each.partition_index}={each.committed_offset}"
        for topic in body.topics
        for each in topic.partitions
    )


def _rebalance(rebalance: Rebalance) -> str:
    return _words(
        f"rebalance {rebalance.result} gen={rebalance.generation}",
        _option("member", rebalance.member_id, ""),
        _option("protocol", rebalance.protocol),
        f"leader-of-{rebalance.members}" if rebalance.is_leader else None,
        f'reason="{rebalance.reason}"',
        f"started={format_millis(rebalance.started_at)}",
        _span("join", rebalance.join_ms),
        _span("sync", rebalance.sync_ms),
        _span("poll-wait", rebalance.poll_wait_ms),
        _span("listener", rebalance.listener_ms),
        f"owns={format_partitions(rebalance.assigned)}",
        *(
            _option(name, format_partitions(changed), "-")
            for name, changed in (
                ("added", rebalance.added),
                ("revoked", rebalance.revoked),
                ("lost", rebalance.lost),
            )
        ),
    )


def _span(name: str, span_ms: Millis) -> str | None:
    return _option(name, format_millis(span_ms), "0")
