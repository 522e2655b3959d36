"""Prints what a member said, one line for each effect, in the order it was said.

What has its usual value is left out: joins that may take 305s, and all else 30s.
"""

from typing import Any, assert_never

from kohort.client.member import effects
from kohort.client.member.effects import Effect
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
from tests.client.spelling import (
    tell_error,
    tell_partitions,
    tell_positions,
    tell_subscription,
    tell_topics,
)
from tests.coordinator.spelling import tell_assignment, tell_millis

KINDS: dict[type, str] = {
    k08_offset_commit.OffsetCommitRequest: "commit",
    k09_offset_fetch.OffsetFetchRequest: "fetch",
    k10_find_coordinator.FindCoordinatorRequest: "find",
    k11_join_group.JoinGroupRequest: "join",
    k12_heartbeat.HeartbeatRequest: "heartbeat",
    k13_leave_group.LeaveGroupRequest: "leave",
    k14_sync_group.SyncGroupRequest: "sync",
}


def tell(effect: Effect, name: str) -> str:  # noqa: C901  # a flat table
    """`name` is what a request is called."""
    match effect:
        case effects.Send():
            return _send(effect, name)
        case effects.Call():
            return f"call {effect.change} {tell_partitions(effect.partitions)}"
        case effects.AwaitPoll():
            return "await-poll"
        case effects.TellPositions():
            leaving = tell_partitions(effect.leaving) if effect.leaving else None
            return _words("tell-positions", _option("leaving", leaving))
        case effects.WatchTopics():
            return f"watch {tell_topics(effect.topics)}"
        case effects.Committed():
            return _words(f"committed {effect.question}", _error(effect.error))
        case effects.CommittedTold():
            told = _error(effect.error) or tell_positions(effect.positions)
            return f"committed-told {effect.question} {told}"
        case effects.AutoCommitted():
            told = tell_positions(effect.positions)
            return _words(f"auto-committed {told}", _error(effect.error))
        case effects.Told():
            return _told(effect.rebalance)
        case effects.Failed():
            return f"failed {tell_error(effect.error)}"
        case effects.Ended():
            return "ended"
        case _:
            assert_never(effect)


def _words(*words: str | None) -> str:
    return " ".join(word for word in words if word)


def _option(name: str, text: object, usual: object = None) -> str | None:
    return None if text is None or text == usual else f"{name}={text}"


def _error(error: Any) -> str | None:
    return None if error is None else tell_error(error)


def _send(send: effects.Send, name: str) -> str:
    to = "anyone" if send.broker is None else send.broker.host
    usual_ms = 305_000 if name.startswith("join") else 30_000
    return _words(
        f"send {name} to {to}",
        _body(send.body),
        _option("within", tell_millis(send.timeout_ms), tell_millis(usual_ms)),
    )


def _body(body: Any) -> str:
    match body:
        case k10_find_coordinator.FindCoordinatorRequest():
            return f"{','.join(body.coordinator_keys)}"
        case k11_join_group.JoinGroupRequest():
            offers = (f"{each.name}{tell_subscription(each.metadata)}" for each in body.protocols)
            return _words(_who(body), *offers, f'reason="{body.reason}"')
        case k14_sync_group.SyncGroupRequest():
            given = (
                f"{e.member_id}={tell_assignment(e.assignment) or '-'}" for e in body.assignments
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
            asked = (
                f"{t.name}:{','.join(map(str, t.partition_indexes))}" for t in group.topics or ()
            )
            return _words(";".join(asked), None if body.require_stable else "unstable too")
        case _:
            raise AssertionError(f"no member sends {body}")


def _who(body: Any) -> str | None:
    instance = "" if body.group_instance_id is None else f"/{body.group_instance_id}"
    return f"{body.member_id}{instance}" or None


def _committed(body: k08_offset_commit.OffsetCommitRequest) -> str:
    return " ".join(
        f"{topic.name}:{each.partition_index}={each.committed_offset}"
        for topic in body.topics
        for each in topic.partitions
    )


def _told(told: Rebalance) -> str:
    return _words(
        f"told {told.ending} gen={told.generation}",
        _option("member", told.member_id, ""),
        _option("protocol", told.protocol),
        f"leader-of-{told.members}" if told.is_leader else None,
        f'reason="{told.reason}"',
        f"began={tell_millis(told.began_at)}",
        _span("join", told.join_ms),
        _span("sync", told.sync_ms),
        _span("waited", told.waited_ms),
        _span("called", told.callback_ms),
        f"has={tell_partitions(told.assigned)}",
        *(
            _option(name, tell_partitions(changed), "-")
            for name, changed in (
                ("added", told.added),
                ("revoked", told.revoked),
                ("lost", told.lost),
            )
        ),
    )


def _span(name: str, span_ms: Millis) -> str | None:
    return _option(name, tell_millis(span_ms), "0")
