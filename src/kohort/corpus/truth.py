"""What really happened, as the script knows it: one JSON object a line.

Nothing here is read back from the coordinator's notes. docs/corpus.md explains the lines.
"""

import json
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kohort.coordinator.notes import Ending, Party, Trigger
from kohort.types import Generation, GroupId, Millis, value


@value
class Group:
    """A group of the corpus and the kind of history it was given."""

    group_id: GroupId
    kind: str
    protocol_type: str
    topics: tuple[str, ...]


@value
class Rebalance:
    """One rebalance. One that was still going on when the history ended has neither end."""

    group_id: GroupId
    trigger: Trigger
    culprit: Party | None
    generation_before: Generation
    generation: Generation | None = None
    started_ms: Millis
    ended_ms: Millis | None = None
    ending: Ending | None = None


@value
class Pathology:
    """Something wrong that the script did on purpose."""

    kind: str
    group_id: GroupId
    from_ms: Millis
    to_ms: Millis
    subject: str | None
    """The client id or topic it is about; None for the whole group."""
    what: str


@value
class LookAlike:
    """Something innocent that looks like the named pathology at first sight."""

    resembles: str
    group_id: GroupId
    from_ms: Millis
    to_ms: Millis
    subject: str | None
    what: str


Line: TypeAlias = Group | Rebalance | Pathology | LookAlike

_NAMES = {
    Group: "group",
    Rebalance: "rebalance",
    Pathology: "pathology",
    LookAlike: "look-alike",
}


@dataclass(slots=True)
class Truth:
    """Everything the script has done so far."""

    groups: list[Group] = field(default_factory=list)
    rebalances: list[Rebalance] = field(default_factory=list)
    pathologies: list[Pathology] = field(default_factory=list)
    look_alikes: list[LookAlike] = field(default_factory=list)

    def lines(self) -> list[str]:
        """Groups first, then what was done to them and what came of it, each in order of time."""
        return [
            *map(line_of, sorted(self.groups, key=lambda each: each.group_id)),
            *map(line_of, sorted(self.pathologies, key=_begun)),
            *map(line_of, sorted(self.look_alikes, key=_begun)),
            *map(line_of, sorted(self.rebalances, key=_started)),
        ]


def line_of(line: Line) -> str:
    fields: dict[str, Any] = {"what": _NAMES[type(line)]}
    match line:
        case Group():
            fields["group"] = line.group_id
            fields |= {"kind": line.kind, "protocol_type": line.protocol_type}
            fields["topics"] = list(line.topics)
        case Rebalance():
            fields["group"] = line.group_id
            fields["generation_before"] = line.generation_before
            fields |= {"generation": line.generation, "started_ms": line.started_ms}
            fields |= {"ended_ms": line.ended_ms, "ending": line.ending}
            fields |= {"trigger": line.trigger, "culprit": _spell(line.culprit)}
        case Pathology():
            fields["kind"] = line.kind
            fields |= _spell_stretch(line)
        case LookAlike():
            fields["resembles"] = line.resembles
            fields |= _spell_stretch(line)
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)


def _spell_stretch(line: Pathology | LookAlike) -> dict[str, Any]:
    return {
        "group": line.group_id,
        "from_ms": line.from_ms,
        "to_ms": line.to_ms,
        "subject": line.subject,
        "how": line.what,
    }


def _spell(party: Party | None) -> dict[str, Any] | None:
    if party is None:
        return None
    return {
        "member_id": party.member_id,
        "instance_id": party.instance_id,
        "client_id": party.client_id,
        "client_host": party.client_host,
    }


def _begun(each: Pathology | LookAlike) -> tuple[int, str, str]:
    return each.from_ms, each.group_id, each.what


def _started(each: Rebalance) -> tuple[int, str, int]:
    return each.started_ms, each.group_id, each.generation_before
