"""The labels of a history: what the script did and what it caused, one JSON object per line.

No label is derived from the coordinator's events. docs/explanation/labelled-histories.md explains
the format.
"""

import json
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kohort.coordinator.events import MemberInfo, RebalanceResult, Trigger
from kohort.types import Generation, GroupId, Millis, value


@value
class GroupLabel:
    """A group and its scenario."""

    group_id: GroupId
    scenario: str
    protocol_type: str
    topics: tuple[str, ...]


@value
class RebalanceLabel:
    """One rebalance. `ended_ms` and `ending` are None if it was in progress at the end."""

    group_id: GroupId
    trigger: Trigger
    initiator: MemberInfo | None
    generation_before: Generation
    generation: Generation | None = None
    started_ms: Millis
    ended_ms: Millis | None = None
    ending: RebalanceResult | None = None


@value
class PathologyLabel:
    """Something wrong that the script did on purpose."""

    kind: str
    group_id: GroupId
    from_ms: Millis
    to_ms: Millis
    subject: str | None
    """The client id or topic; None for the whole group."""
    what: str


@value
class LookAlikeLabel:
    """Something harmless that resembles the named pathology."""

    resembles: str
    group_id: GroupId
    from_ms: Millis
    to_ms: Millis
    subject: str | None
    what: str


Label: TypeAlias = GroupLabel | RebalanceLabel | PathologyLabel | LookAlikeLabel

_NAMES = {
    GroupLabel: "group",
    RebalanceLabel: "rebalance",
    PathologyLabel: "pathology",
    LookAlikeLabel: "look-alike",
}


@dataclass(slots=True)
class Labels:
    groups: list[GroupLabel] = field(default_factory=list)
    rebalances: list[RebalanceLabel] = field(default_factory=list)
    pathologies: list[PathologyLabel] = field(default_factory=list)
    look_alikes: list[LookAlikeLabel] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Groups, pathologies, look-alikes, rebalances; groups by name, all others by time."""
        return [
            *map(line_of, sorted(self.groups, key=lambda each: each.group_id)),
            *map(line_of, sorted(self.pathologies, key=_range_order)),
            *map(line_of, sorted(self.look_alikes, key=_range_order)),
            *map(line_of, sorted(self.rebalances, key=_rebalance_order)),
        ]


def line_of(label: Label) -> str:
    fields: dict[str, Any] = {"what": _NAMES[type(label)]}
    match label:
        case GroupLabel():
            fields["group"] = label.group_id
            fields |= {"kind": label.scenario, "protocol_type": label.protocol_type}
            fields["topics"] = list(label.topics)
        case RebalanceLabel():
            fields["group"] = label.group_id
            fields["generation_before"] = label.generation_before
            fields |= {"generation": label.generation, "started_ms": label.started_ms}
            fields |= {"ended_ms": label.ended_ms, "ending": label.ending}
            # The field has the same name as in `__kohort_events`.
            fields |= {"trigger": label.trigger, "initiator": _member_fields(label.initiator)}
        case PathologyLabel():
            fields["kind"] = label.kind
            fields |= _range_fields(label)
        case LookAlikeLabel():
            fields["resembles"] = label.resembles
            fields |= _range_fields(label)
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def _range_fields(label: PathologyLabel | LookAlikeLabel) -> dict[str, Any]:
    return {
        "group": label.group_id,
        "from_ms": label.from_ms,
        "to_ms": label.to_ms,
        "subject": label.subject,
        "how": label.what,
    }


def _member_fields(member: MemberInfo | None) -> dict[str, Any] | None:
    if member is None:
        return None
    return {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
    }


def _range_order(label: PathologyLabel | LookAlikeLabel) -> tuple[int, str, str]:
    return label.from_ms, label.group_id, label.what


def _rebalance_order(label: RebalanceLabel) -> tuple[int, str, int]:
    return label.started_ms, label.group_id, label.generation_before
