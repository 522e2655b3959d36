"""Every fact of the catalogue is shown by a trace or a table test, and no other is named."""

import ast
from collections.abc import Iterable
from pathlib import Path

from tests.coordinator.rows import ROWS
from tests.coordinator.tracing import FOLDER, read


def test_every_row_is_shown_somewhere() -> None:
    assert not sorted(ROWS.keys() - _shown())


def test_no_unknown_row_is_named() -> None:
    assert not sorted(_shown() - ROWS.keys())


def _shown() -> set[str]:
    by_traces = (read(path.read_text()).shows for path in FOLDER.rglob("*.trace"))
    by_tables = map(_declared, Path(__file__).parent.glob("test_*.py"))
    return set[str]().union(*by_traces, *by_tables)


def _declared(path: Path) -> Iterable[str]:
    """What a test module says it shows, in a constant of its own."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SHOWS":
            rows: tuple[str, ...] = ast.literal_eval(node.value)
            return rows
    return ()
