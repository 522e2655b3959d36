"""Plan files, to store a failure and run it again.

Lines that begin with # are comments. Each other line is a keyword and a JSON value: one `plan`,
then each `member`, `producer` and `event`.
"""

import json
from dataclasses import asdict, fields
from typing import Any, Final

from kohort.sim.network import NetworkConditions
from kohort.sim.plan import (
    CommitMode,
    EventKind,
    MemberPlan,
    PlannedEvent,
    ProducerPlan,
    SimulationPlan,
)

_LISTS: Final = {"member": "members", "producer": "producers", "event": "events"}


class InvalidPlan(Exception):
    """The file is not a valid plan; the message names the line and the reason."""


def write_plan(plan: SimulationPlan, remarks: tuple[str, ...] = ()) -> str:
    content = asdict(plan)
    lines = [f"# {remark}".rstrip() for remark in remarks]
    listed = {keyword: content.pop(name) for keyword, name in _LISTS.items()}
    lines.append(f"plan {json.dumps(content)}")
    for keyword, items in listed.items():
        lines += [f"{keyword} {json.dumps(_without_defaults(keyword, item))}" for item in items]
    return "\n".join(lines) + "\n"


def read_plan(text: str) -> SimulationPlan:
    content: dict[str, Any] = {}
    lists: dict[str, list[Any]] = {name: [] for name in _LISTS.values()}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        keyword, _, rest = line.partition(" ")
        try:
            item = json.loads(rest)
            if keyword == "plan":
                content = item
            else:
                lists[_LISTS[keyword]].append(_read_item(keyword, item))
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidPlan(f"line {number}: not a valid plan line: {error!r}") from error
    try:
        content["conditions"] = NetworkConditions(**content["conditions"])
        return SimulationPlan(
            **{**_tuples(content), **{name: tuple(all_) for name, all_ in lists.items()}}
        )
    except (KeyError, TypeError) as error:
        raise InvalidPlan(f"not a valid plan: {error!r}") from error


def _read_item(keyword: str, item: dict[str, Any]) -> MemberPlan | ProducerPlan | PlannedEvent:
    item = _tuples(item)
    if keyword == "member":
        return MemberPlan(**{**item, "commits": CommitMode(item["commits"])})
    if keyword == "producer":
        return ProducerPlan(**item)
    return PlannedEvent(**{**item, "kind": EventKind(item["kind"])})


def _tuples(item: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(each) if isinstance(each, list) else each for key, each in item.items()}


def _without_defaults(keyword: str, item: dict[str, Any]) -> dict[str, Any]:
    if keyword != "event":
        return item
    defaults = {field.name: field.default for field in fields(PlannedEvent)}
    return {key: each for key, each in item.items() if each != defaults[key]}
