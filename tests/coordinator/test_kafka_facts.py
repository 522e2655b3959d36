"""Every fact of `kafka_facts` is covered by a trace or a table test."""

import ast
from collections.abc import Iterable
from pathlib import Path

from tests.coordinator.kafka_facts import FACTS
from tests.coordinator.trace_player import FOLDER, read


def test_every_fact_is_covered() -> None:
    assert not sorted(FACTS.keys() - _covered())


def test_no_unknown_fact_is_referenced() -> None:
    assert not sorted(_covered() - FACTS.keys())


def _covered() -> set[str]:
    by_traces = (read(path.read_text()).shows for path in FOLDER.rglob("*.trace"))
    by_tables = map(_declared, Path(__file__).parent.glob("test_*.py"))
    return set[str]().union(*by_traces, *by_tables)


def _declared(path: Path) -> Iterable[str]:
    """Return the constant SHOWS of a test module."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SHOWS":
            facts: tuple[str, ...] = ast.literal_eval(node.value)
            return facts
    return ()
