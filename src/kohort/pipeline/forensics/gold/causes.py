"""What made a rebalance begin, guessed from two generations and the commits around them.

Two generations tell who is new, who is gone and whose subscription changed, not in which order.
The rules are asked in their order, and the first that applies answers. A rule's confidence is how
often it is right: each was set by judgement and is measured on histories whose truth is known
(docs/corpus.md). It is about the trigger; the culprit is the likeliest of those who can have
pulled it, and null where there is nobody to name.

What is never guessed, because nothing kept tells of it: that an assignment could not be stored,
that a group was over its capacity, and that a first join was parked for too long.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from kohort.pipeline.forensics.gold.pairs import KEY, PARTY
from kohort.types import value


@value
class Rule:
    name: str
    when: str
    trigger: str
    """As SQL, quotes included: some rules have a choice."""
    culprit: str
    confidence: float


_LEAVER: Final = "exit.party"
_JOINER: Final = "get(joined, 0)"
_LEADER: Final = "leader_before"
_RETURNED: Final = (
    f"get(filter(joined, m -> m.client_id = {_LEAVER}.client_id AND "
    f"m.client_host = {_LEAVER}.client_host), 0)"
)
"""Whoever is new and is the program that is gone."""

RULES: Final = (
    Rule(
        name="the history begins in the middle: who was before is not known",
        when="before IS NULL AND NOT is_first",
        trigger="NULL",
        culprit="NULL",
        confidence=0.0,
    ),
    Rule(
        name="nobody was there, and the first to come leads",
        when="members_before = 0",
        trigger="'member-joined'",
        culprit="leader_after",
        confidence=0.98,
    ),
    Rule(
        name="somebody was waited for until it was given up, and somebody is new",
        when="exit.kind = 'waited' AND size(joined) > 0",
        trigger="'member-joined'",
        culprit=f"coalesce({_RETURNED}, {_JOINER})",
        confidence=0.85,
    ),
    Rule(
        name="a member was in the generation and never asked for its part",
        when="exit.kind = 'unsynced'",
        trigger="'sync-expired'",
        culprit=_LEAVER,
        confidence=0.7,
    ),
    Rule(
        name="an instance is gone before its session was over: it does not leave by itself",
        when="exit.kind = 'left' AND exit.is_static",
        trigger="'member-removed'",
        culprit=_LEAVER,
        confidence=0.9,
    ),
    Rule(
        name="a member is gone soon after its last commit, and nobody is new",
        when="exit.kind = 'left' AND size(joined) = 0",
        trigger="'member-left'",
        culprit=_LEAVER,
        confidence=0.96,
    ),
    Rule(
        name="a member is gone soon after its last commit, and somebody is new",
        when="exit.kind = 'left'",
        trigger="'member-left'",
        culprit=_LEAVER,
        confidence=0.92,
    ),
    Rule(
        name="a member's silence was its session timeout",
        when="exit.kind = 'expired'",
        trigger="'session-expired'",
        culprit=_LEAVER,
        confidence=0.93,
    ),
    Rule(
        name="a member's silence was its rebalance timeout",
        when="exit.kind = 'stuck'",
        trigger="'member-left'",
        culprit=_LEAVER,
        confidence=0.9,
    ),
    Rule(
        name="a member was waited for until it was given up, and nobody is new",
        when="exit.kind = 'waited'",
        trigger="'session-expired'",
        culprit=_LEAVER,
        confidence=0.5,
    ),
    Rule(
        name="a member that did not commit though others did is gone, and is back",
        when=f"exit.kind = 'mute' AND {_RETURNED} IS NOT NULL",
        trigger="'member-joined'",
        culprit=_RETURNED,
        confidence=0.6,
    ),
    Rule(
        name="a member that did not commit though others did is gone",
        when="exit.kind = 'mute'",
        trigger="'session-expired'",
        culprit=_LEAVER,
        confidence=0.85,
    ),
    Rule(
        name="a member that had not committed for long is gone",
        when="exit IS NOT NULL",
        trigger="CASE WHEN exit.is_static THEN 'session-expired' ELSE 'member-left' END",
        culprit=_LEAVER,
        confidence=0.6,
    ),
    Rule(
        name="somebody is new and nobody is gone",
        when="size(joined) > 0",
        trigger="'member-joined'",
        culprit=_JOINER,
        confidence=0.98,
    ),
    Rule(
        name="an instance has a new id, and the protocol is another one",
        when="reborn IS NOT NULL AND before.protocol != after.protocol",
        trigger="'protocol-changed'",
        culprit="reborn",
        confidence=0.9,
    ),
    Rule(
        name="an instance has a new id, and a generation in between was never kept",
        when="reborn IS NOT NULL AND after.generation > before.generation + 1",
        trigger="'instance-restarted'",
        culprit="reborn",
        confidence=0.7,
    ),
    Rule(
        name="the leader wants other topics",
        when="changed.member_id = before.leader",
        trigger="'leader-rejoined'",
        culprit="changed",
        confidence=0.85,
    ),
    Rule(
        name="somebody wants other topics",
        when="changed IS NOT NULL",
        trigger="'subscription-changed'",
        culprit="changed",
        confidence=0.9,
    ),
    Rule(
        name="the leader had partitions to give up, and joined again without them",
        when="exists(givers, m -> m.member_id = before.leader)",
        trigger="'leader-rejoined'",
        culprit=_LEADER,
        confidence=0.7,
    ),
    Rule(
        name="somebody had partitions to give up, and joined again without them",
        when="size(givers) > 0",
        trigger="'subscription-changed'",
        culprit="get(givers, 0)",
        confidence=0.85,
    ),
    Rule(
        name="nothing else has changed",
        when="true",
        trigger="'leader-rejoined'",
        culprit=_LEADER,
        confidence=0.9,
    ),
)


def causes(paired: DataFrame, silences: DataFrame) -> DataFrame:
    """Each pair with its trigger, culprit, confidence and rule, and when it may have begun."""
    seen = (
        paired.join(silences, ["group_id", "era", "seq"], "left")
        .withColumn("exit", sql.expr("get(exits, 0)"))
        .selectExpr(
            "*",
            f"transform(joiners, m -> {PARTY}) AS joined",
            f"transform(leavers, m -> {PARTY}) AS departed",
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
            f"m -> {PARTY}) AS givers",
        )
    )
    return (
        seen.withColumn("rule", _choice("name"))
        .withColumn("trigger", _choice("trigger"))
        .withColumn("culprit", _choice("culprit"))
        .withColumn("confidence", _choice("confidence"))
    )


def _first(members: str, condition: str, name: str) -> str:
    return f"get(transform(filter({members}, m -> {condition}), m -> {PARTY}), 0) AS {name}"


def _choice(what: str) -> Column:
    def answer(rule: Rule) -> str:
        said = getattr(rule, what)
        if what == "name":
            return f"'{said.replace(chr(39), chr(92) + chr(39))}'"
        return f"{said}D" if what == "confidence" else said

    cases = " ".join(f"WHEN {rule.when} THEN {answer(rule)}" for rule in RULES)
    return sql.expr(f"CASE {cases} END")
