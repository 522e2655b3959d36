"""Plans as text, so that a failure can be kept, read and run again.

Lines that begin with # are for people. The rest is one JSON value per line, each behind a word that
says what it is: `plan`, then every `member`, `producer` and `decision`.
"""

import json
from dataclasses import asdict, fields
from typing import Any, Final

from kohort.sim.network import Weather
from kohort.sim.plan import Commits, Decision, Kind, MemberPlan, Plan, ProducerPlan

_LISTS: Final = {"member": "members", "producer": "producers", "decision": "decisions"}


class BadPlan(Exception):
    """A file that holds no plan; says where and why."""


def write_plan(plan: Plan, remarks: tuple[str, ...] = ()) -> str:
    content = asdict(plan)
    lines = [f"# {remark}".rstrip() for remark in remarks]
    listed = {word: content.pop(name) for word, name in _LISTS.items()}
    lines.append(f"plan {json.dumps(content)}")
    for word, items in listed.items():
        lines += [f"{word} {json.dumps(_without_defaults(word, item))}" for item in items]
    return "\n".join(lines) + "\n"


def read_plan(text: str) -> Plan:
    content: dict[str, Any] = {}
    lists: dict[str, list[Any]] = {name: [] for name in _LISTS.values()}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        try:
            item = json.loads(rest)
            if word == "plan":
                content = item
            else:
                lists[_LISTS[word]].append(_read_item(word, item))
        except (ValueError, KeyError, TypeError) as error:
            raise BadPlan(f"line {number}: no plan has this: {error!r}") from error
    try:
        content["weather"] = Weather(**content["weather"])
        return Plan(**{**_tuples(content), **{name: tuple(all_) for name, all_ in lists.items()}})
    except (KeyError, TypeError) as error:
        raise BadPlan(f"this is no plan: {error!r}") from error


def _read_item(word: str, item: dict[str, Any]) -> MemberPlan | ProducerPlan | Decision:
    item = _tuples(item)
    if word == "member":
        return MemberPlan(**{**item, "commits": Commits(item["commits"])})
    if word == "producer":
        return ProducerPlan(**item)
    return Decision(**{**item, "kind": Kind(item["kind"])})


def _tuples(item: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(each) if isinstance(each, list) else each for key, each in item.items()}


def _without_defaults(word: str, item: dict[str, Any]) -> dict[str, Any]:
    if word != "decision":
        return item
    defaults = {field.name: field.default for field in fields(Decision)}
    return {key: each for key, each in item.items() if each != defaults[key]}
