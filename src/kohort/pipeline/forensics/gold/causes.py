"""The trigger of a rebalance, inferred from two generations and the commits around them.

Two generations show which members are new, which left and whose subscription changed, but not in
which order. The first rule that applies is chosen. The confidence of a rule estimates how often its
trigger is right; docs/reference/forensics-accuracy.md measures it on labelled histories. The
initiator is the most likely candidate, or null.

Never inferred, because no record shows it: assignment-not-stored, over-capacity, join-expired and
forced.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.gold.generation_pairs import IDENTITY, KEY
from kohort.types import value


@value
class CauseRule:
    name: str
    when: str
    trigger: str
    """SQL; literals are quoted, because some rules have a CASE."""
    initiator: str
    confidence: float


_LEAVER: Final = "exit.party"
_JOINER: Final = "get(joined, 0)"
_LEADER: Final = "leader_before"
_RETURNED: Final = (
    f"get(filter(joined, m -> m.client_id = {_LEAVER}.client_id AND "
    f"m.client_host = {_LEAVER}.client_host), 0)"
)
"""The new member that is the same client as the departed one."""

RULES: Final = (
    CauseRule(
        name="the history starts in the middle: the previous members are unknown",
        when="before IS NULL AND NOT is_first",
        trigger="NULL",
        initiator="NULL",
        confidence=0.0,
    ),
    CauseRule(
        name="the group was empty, and the first member is the leader",
        when="members_before = 0",
        trigger="'member-joined'",
        initiator="leader_after",
        confidence=0.98,
    ),
    CauseRule(
        name="the group waited for a member until its timeout, and a member is new",
        when="exit.kind = 'waited' AND size(joined) > 0",
        trigger="'member-joined'",
        initiator=f"coalesce({_RETURNED}, {_JOINER})",
        confidence=0.85,
    ),
    CauseRule(
        name="a member joined the generation and never synced",
        when="exit.kind = 'unsynced'",
        trigger="'sync-expired'",
        initiator=_LEAVER,
        confidence=0.7,
    ),
    CauseRule(
        name="a static member is gone before its session expired: it does not leave by itself",
        when="exit.kind = 'left' AND exit.is_static",
        trigger="'member-removed'",
        initiator=_LEAVER,
        confidence=0.9,
    ),
    CauseRule(
        name="a member is gone soon after its last commit, and no member is new",
        when="exit.kind = 'left' AND size(joined) = 0",
        trigger="'member-left'",
        initiator=_LEAVER,
        confidence=0.96,
    ),
    CauseRule(
        name="a member is gone soon after its last commit, and a member is new",
        when="exit.kind = 'left'",
        trigger="'member-left'",
        initiator=_LEAVER,
        confidence=0.92,
    ),
    CauseRule(
        name="a member had no activity for its session timeout",
        when="exit.kind = 'expired'",
        trigger="'session-expired'",
        initiator=_LEAVER,
        confidence=0.93,
    ),
    CauseRule(
        name="a member had no activity for its rebalance timeout",
        when="exit.kind = 'stuck'",
        trigger="'member-left'",
        initiator=_LEAVER,
        confidence=0.9,
    ),
    CauseRule(
        name="the group waited for a member until its timeout, and no member is new",
        when="exit.kind = 'waited'",
        trigger="'session-expired'",
        initiator=_LEAVER,
        confidence=0.5,
    ),
    CauseRule(
        name="a member that did not commit while others did is gone and has rejoined",
        when=f"exit.kind = 'mute' AND {_RETURNED} IS NOT NULL",
        trigger="'member-joined'",
        initiator=_RETURNED,
        confidence=0.6,
    ),
    CauseRule(
        name="a member that did not commit while others did is gone",
        when="exit.kind = 'mute'",
        trigger="'session-expired'",
        initiator=_LEAVER,
        confidence=0.85,
    ),
    CauseRule(
        name="a member that had not committed for a long time is gone",
        when="exit IS NOT NULL",
        trigger="CASE WHEN exit.is_static THEN 'session-expired' ELSE 'member-left' END",
        initiator=_LEAVER,
        confidence=0.6,
    ),
    CauseRule(
        name="a member is new and none is gone",
        when="size(joined) > 0",
        trigger="'member-joined'",
        initiator=_JOINER,
        confidence=0.98,
    ),
    CauseRule(
        name="a static member has a new member id, and the assignor changed",
        when="reborn IS NOT NULL AND before.protocol != after.protocol",
        trigger="'protocol-changed'",
        initiator="reborn",
        confidence=0.9,
    ),
    CauseRule(
        name="a static member has a new member id, and a generation in between was not stored",
        when="reborn IS NOT NULL AND after.generation > before.generation + 1",
        trigger="'instance-restarted'",
        initiator="reborn",
        confidence=0.7,
    ),
    CauseRule(
        name="the subscription of the leader changed",
        when="changed.member_id = before.leader",
        trigger="'leader-rejoined'",
        initiator="changed",
        confidence=0.85,
    ),
    CauseRule(
        name="the subscription of a member changed",
        when="changed IS NOT NULL",
        trigger="'subscription-changed'",
        initiator="changed",
        confidence=0.9,
    ),
    CauseRule(
        name="the leader had to revoke partitions and rejoined",
        when="exists(givers, m -> m.member_id = before.leader)",
        trigger="'leader-rejoined'",
        initiator=_LEADER,
        confidence=0.7,
    ),
    CauseRule(
        name="a member had to revoke partitions and rejoined",
        when="size(givers) > 0",
        trigger="'subscription-changed'",
        initiator="get(givers, 0)",
        confidence=0.85,
    ),
    CauseRule(
        name="nothing else has changed",
        when="true",
        trigger="'leader-rejoined'",
        initiator=_LEADER,
        confidence=0.9,
    ),
)


def causes(paired: DataFrame, departures: DataFrame) -> DataFrame:
    """Each pair with its trigger, initiator, confidence and rule."""
    seen = (
        paired.join(departures, ["group_id", "deletions", "seq"], "left")
        .withColumn("exit", sql.expr("get(exits, 0)"))
        .selectExpr(
            "*",
            f"transform(joiners, m -> {IDENTITY}) AS joined",
            f"transform(leavers, m -> {IDENTITY}) AS departed",
            _first("after.members", "m.member_id = after.leader", "leader_after"),
            _first("before.members", "m.member_id = before.leader", "leader_before"),
            _first(
                "after.members",
                "m.instance_id IS NOT NULL AND NOT exists(before.members, "
                "o -> o.member_id = m.member_id) AND array_contains(keys_before, " + KEY + ")",
                "reborn",
            ),
            _first(
                "after.members",
                f"exists(before.members, o -> {KEY.replace('m.', 'o.')} = {KEY} AND "
                "array_sort(o.topics) != array_sort(m.topics))",
                "changed",
            ),
            "transform(filter(before.members, m -> size(array_except(m.owned, m.assigned)) > 0), "
            f"m -> {IDENTITY}) AS givers",
        )
    )
    return (
        seen.withColumn("rule", _choice("name"))
        .withColumn("trigger", _choice("trigger"))
        .withColumn("initiator", _choice("initiator"))
        .withColumn("confidence", _choice("confidence"))
    )


def _first(members: str, condition: str, name: str) -> str:
    return f"get(transform(filter({members}, m -> {condition}), m -> {IDENTITY}), 0) AS {name}"


def _choice(what: str) -> Column:
    def expression(rule: CauseRule) -> str:
        text = getattr(rule, what)
        if what == "name":
            return f"'{text.replace(chr(39), chr(92) + chr(39))}'"
        return f"{text}D" if what == "confidence" else text

    cases = " ".join(f"WHEN {rule.when} THEN {expression(rule)}" for rule in RULES)
    return sql.expr(f"CASE {cases} END")
