"""Two testimonies of the same rebalances: the script's own, and the coordinator's notes."""

import json
from pathlib import Path
from typing import Any

from kohort.coordinator.commands import Protocol
from kohort.coordinator.notes import Party
from kohort.corpus.making import Plan, make
from kohort.corpus.timeline import Timeline
from kohort.corpus.truth import Truth
from kohort.corpus.witness import Standing, Witness
from kohort.types import GroupId, MemberId, Millis
from tests.corpus.conftest import Corpus
from tests.corpus.histories import History, read_corpus

Told = list[tuple[Any, ...]]


def by_the_script(history: History) -> Told:
    return [
        (
            each["started_ms"],
            each["ended_ms"],
            each["generation_before"],
            each["generation"],
            each["ending"],
            each["trigger"],
            each["culprit"],
        )
        for each in history.rebalances
    ]


def by_the_notes(history: History) -> Told:
    ended: Told = [
        (
            each["started_ms"],
            each["at"],
            each["generation_before"],
            each["generation"],
            each["ending"],
            each["trigger"],
            each["culprit"],
        )
        for each in history.named("rebalance-ended")
    ]
    begun = history.named("rebalance-started")
    assert len(begun) - len(ended) in (0, 1)
    for each in begun[len(ended) :]:
        going_on = (each["at"], None, each["generation"], None, None)
        ended.append((*going_on, each["trigger"], each["culprit"]))
    return ended


def test_the_truth_is_what_the_coordinator_noted(corpus: Corpus) -> None:
    for history in corpus.histories.values():
        assert by_the_script(history) == by_the_notes(history), history.kind

    assert sum(len(history.rebalances) for history in corpus.histories.values()) > 300


def test_another_seed_and_length_have_a_true_truth_too(tmp_path: Path) -> None:
    make(Plan(seed=11, hours=1, partitions=1), tmp_path / "made")

    histories = read_corpus(tmp_path / "made")

    for history in histories.values():
        assert by_the_script(history) == by_the_notes(history), history.kind


def test_a_rebalance_that_goes_on_at_the_end_has_no_end() -> None:
    party = Party(member_id=MemberId("a-1"), instance_id=None, client_id="a", client_host="/h")
    protocols = (Protocol(name="range", metadata=b""),)
    truth = Truth()
    witness = Witness(GroupId("billing"), Timeline(Millis(1_000)), truth)

    standing = Standing(party, protocols, session_ms=6_000, rebalance_ms=9_000, heard_ms=Millis(0))
    witness.joins(standing, is_new=True)
    witness.end()

    (line,) = map(json.loads, truth.lines())
    assert (line["started_ms"], line["trigger"]) == (1_000, "member-joined")
    assert line["culprit"]["member_id"] == "a-1"
    assert (line["ended_ms"], line["generation"], line["ending"]) == (None, None, None)


def test_truth_tells_generations_as_the_offsets_topic_keeps_them(corpus: Corpus) -> None:
    for history in corpus.histories.values():
        kept = {(at, formed.generation) for at, formed in history.generations}
        told = {
            (each["ended_ms"], each["generation"])
            for each in history.rebalances
            if each["ending"] in ("stable", "empty")
        }

        assert told <= kept, history.kind
