"""What forensics found, on the console's pages."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kohort.console.address import group_path
from kohort.console.server import Console
from kohort.pipeline.forensics.found import NoFindings, read_findings
from tests.client.clusters import Cluster, at
from tests.console.visiting import Visitor

pa = pytest.importorskip("pyarrow", reason="tables are read with pyarrow, of the extra spark")


def finding(**changes: Any) -> dict[str, Any]:
    moment = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
    return {
        "group_id": "billing",
        "finding": "crash-loop",
        "severity": "critical",
        "subject": "billing-1",
        "from_at": moment,
        "to_at": moment,
        "count": 3,
        "what": "billing-1 lived for <b>seconds</b>, three times",
        "advice": "see why it ends",
        "setting": "session.timeout.ms=45000",
        "would_have_saved_ms": 12_000,
        "evidence": "{}",
        **changes,
    }


def write_tables(directory: Path, *rows: dict[str, Any]) -> Path:
    import pyarrow.parquet  # noqa: PLC0415  # where there is one

    table = directory / "gold" / "findings"
    table.mkdir(parents=True)
    if rows:
        pyarrow.parquet.write_table(pa.Table.from_pylist(list(rows)), table / "part-0.parquet")
    (directory / "_complete.json").write_text(json.dumps({}))
    return directory


@pytest.fixture
def shown(node: Cluster, tmp_path: Path) -> Iterator[Visitor]:
    rows = [finding(severity="notice", finding="unowned-topic"), finding()]
    write_tables(tmp_path, *rows)
    with Console(node.bootstrap_servers, listen="127.0.0.1:0", forensics=str(tmp_path)) as console:
        yield Visitor(console.url)


def test_the_worst_finding_is_told_first(shown: Visitor) -> None:
    page, told = shown.get("/findings"), shown.json("/findings")

    assert [each["finding"] for each in told["findings"]] == ["crash-loop", "unowned-topic"]
    assert told["findings"][0]["from_ms"] == 1_794_819_600_000
    assert "lived for &lt;b&gt;seconds" in page.text
    assert "session.timeout.ms=45000" in page.text


def test_a_group_shows_its_own(shown: Visitor, node: Cluster) -> None:
    topic = node.create_topic()
    for group in ("billing", node.name_group()):
        with node.consumer(group_id=group, enable_auto_commit=False) as consumer:
            consumer.commit({at(topic): 0})
        told = shown.wait_json(group_path(group), lambda each: each["group"]["readings"])
        assert len(told["findings"]) == (2 if group == "billing" else 0)


def test_tables_that_are_being_built_are_told_of(shown: Visitor, tmp_path: Path) -> None:
    (tmp_path / "_complete.json").unlink()

    assert "has no complete tables" in shown.get("/findings").text


def test_no_findings_are_none(tmp_path: Path) -> None:
    assert read_findings(str(write_tables(tmp_path))) == ()


def test_what_is_no_table_is_told_in_a_sentence(tmp_path: Path) -> None:
    write_tables(tmp_path)
    (tmp_path / "gold" / "findings" / "part-0.parquet").write_bytes(b"no parquet")

    with pytest.raises(NoFindings, match="cannot be read"):
        read_findings(str(tmp_path))
