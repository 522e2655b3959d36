"""The findings of forensics on the console's pages."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kohort.console.findings import FindingsUnavailable, read_findings
from kohort.console.server import Console
from kohort.console.url_encoding import group_path
from tests.client.node_cluster import Cluster, at
from tests.console.http_client import HttpClient

pa = pytest.importorskip("pyarrow", reason="reading the tables requires pyarrow (extra spark)")


def finding(**changes: Any) -> dict[str, Any]:
    timestamp = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
    return {
        "group_id": "billing",
        "finding": "crash-loop",
        "severity": "critical",
        "subject": "billing-1",
        "from_at": timestamp,
        "to_at": timestamp,
        "count": 3,
        "what": "billing-1 left after <b>seconds</b>, three times",
        "advice": "check why it stops",
        "setting": "session.timeout.ms=45000",
        "would_have_saved_ms": 12_000,
        "evidence": "{}",
        **changes,
    }


def write_tables(directory: Path, *rows: dict[str, Any]) -> Path:
    import pyarrow.parquet  # noqa: PLC0415  # optional dependency

    table = directory / "gold" / "findings"
    table.mkdir(parents=True)
    if rows:
        pyarrow.parquet.write_table(pa.Table.from_pylist(list(rows)), table / "part-0.parquet")
    (directory / "_complete.json").write_text(json.dumps({}))
    return directory


@pytest.fixture
def findings_client(node: Cluster, tmp_path: Path) -> Iterator[HttpClient]:
    rows = [finding(severity="notice", finding="unowned-topic"), finding()]
    write_tables(tmp_path, *rows)
    with Console(node.bootstrap_servers, listen="127.0.0.1:0", forensics=str(tmp_path)) as console:
        yield HttpClient(console.url)


def test_findings_are_sorted_by_severity(findings_client: HttpClient) -> None:
    page, data = findings_client.get("/findings"), findings_client.json("/findings")

    assert [each["finding"] for each in data["findings"]] == ["crash-loop", "unowned-topic"]
    assert data["findings"][0]["from_ms"] == 1_794_819_600_000
    assert "left after &lt;b&gt;seconds" in page.text
    assert "session.timeout.ms=45000" in page.text


def test_a_group_page_shows_the_findings_of_the_group(
    findings_client: HttpClient, node: Cluster
) -> None:
    topic = node.create_topic()
    for group in ("billing", node.name_group()):
        with node.consumer(group_id=group, enable_auto_commit=False) as consumer:
            consumer.commit({at(topic): 0})
        data = findings_client.wait_json(group_path(group), lambda each: each["group"]["offsets"])
        assert len(data["findings"]) == (2 if group == "billing" else 0)


def test_incomplete_tables_are_reported(findings_client: HttpClient, tmp_path: Path) -> None:
    (tmp_path / "_complete.json").unlink()

    assert "has no complete forensics tables" in findings_client.get("/findings").text


def test_an_empty_table_has_no_findings(tmp_path: Path) -> None:
    assert read_findings(str(write_tables(tmp_path))) == ()


def test_an_invalid_table_is_reported(tmp_path: Path) -> None:
    write_tables(tmp_path)
    (tmp_path / "gold" / "findings" / "part-0.parquet").write_bytes(b"no parquet")

    with pytest.raises(FindingsUnavailable, match="cannot read the findings"):
        read_findings(str(tmp_path))
