"""A short history of real consumers and a real node, and its labels."""

from pathlib import Path

from tests.histories.reader import read_histories, read_lines
from tools.histories.live_run import generate_live

CLOCK_STEP_MS = 100
"""The system clock may be set back a little between the script's and the node's reading."""


def test_labels_agree_with_the_events_of_the_node(tmp_path: Path) -> None:
    counts = generate_live(tmp_path / "real")

    (history,) = read_histories(tmp_path / "real").values()

    events = history.events_named("rebalance-ended")
    assert [
        (each["trigger"], each["ending"], each["initiator"]) for each in history.rebalances
    ] == [(each["trigger"], each["ending"], each["initiator"]) for each in events]
    for label, event in zip(history.rebalances, events, strict=True):
        assert label["generation_before"] == event["generation_before"]
        assert label["generation"] == event["generation"]
        assert label["started_ms"] - CLOCK_STEP_MS <= event["started_ms"] <= event["at"]
        assert event["at"] <= label["ended_ms"] + CLOCK_STEP_MS
    assert counts.rebalances == len(events)
    assert counts.events == len(history.events)
    assert counts.records == len(history.commits) + len(history.generations)


def test_a_live_run_writes_the_same_files_as_the_generator(tmp_path: Path) -> None:
    generate_live(tmp_path / "real", partitions=2)

    names = {path.name for path in (tmp_path / "real").iterdir()}
    end_offsets = list(read_lines(tmp_path / "real" / "ends.jsonl"))

    assert names == {"log", "ends.jsonl", "truth.jsonl", "README.md"}
    # A partition has a directory if the hash of a group's name selects it.
    assert list((tmp_path / "real" / "log").glob("__consumer_offsets-*"))
    assert end_offsets[-1]["log_end"] > end_offsets[-1]["log_start"] == 0
