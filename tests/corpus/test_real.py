"""A short history of real consumers on a real node, and the truth about it."""

from pathlib import Path

from kohort.corpus.real import make_real
from tests.corpus.histories import read_corpus, read_lines

SET_BACK_MS = 100
"""The machine's clock may be, by a little, between the script's look at it and the node's."""


def test_the_truth_of_a_real_history_is_what_the_node_noted(tmp_path: Path) -> None:
    made = make_real(tmp_path / "real")

    (history,) = read_corpus(tmp_path / "real").values()

    noted = history.named("rebalance-ended")
    assert [(each["trigger"], each["ending"], each["culprit"]) for each in history.rebalances] == [
        (each["trigger"], each["ending"], each["culprit"]) for each in noted
    ]
    for told, note in zip(history.rebalances, noted, strict=True):
        assert told["generation_before"] == note["generation_before"]
        assert told["generation"] == note["generation"]
        assert told["started_ms"] - SET_BACK_MS <= note["started_ms"] <= note["at"]
        assert note["at"] <= told["ended_ms"] + SET_BACK_MS
    assert made.rebalances == len(noted)
    assert made.events == len(history.events)
    assert made.records == len(history.commits) + len(history.generations)


def test_a_real_history_has_the_files_of_any_other(tmp_path: Path) -> None:
    make_real(tmp_path / "real", partitions=2)

    names = {path.name for path in (tmp_path / "real").iterdir()}
    looks = list(read_lines(tmp_path / "real" / "ends.jsonl"))

    assert names == {"log", "ends.jsonl", "truth.jsonl", "README.md"}
    assert len(list((tmp_path / "real" / "log").glob("__consumer_offsets-*"))) == 2
    assert looks[-1]["log_end"] > looks[-1]["log_start"] == 0
