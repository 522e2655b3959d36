"""The labels of the script agree with the events of the coordinator."""

import json
from pathlib import Path
from typing import Any

from kohort.coordinator.commands import Protocol
from kohort.coordinator.events import MemberInfo
from kohort.types import GroupId, MemberId, Millis
from kohort.virtual_time.scheduler import Scheduler
from tests.histories.conftest import GeneratedHistories
from tests.histories.reader import GroupHistory, read_histories
from tools.histories.generator import HistoryOptions, generate
from tools.histories.labels import Labels
from tools.histories.oracle import OracleMember, RebalanceOracle

Rebalances = list[tuple[Any, ...]]


def labelled_rebalances(history: GroupHistory) -> Rebalances:
    return [
        (
            each["started_ms"],
            each["ended_ms"],
            each["generation_before"],
            each["generation"],
            each["ending"],
            each["trigger"],
            each["initiator"],
        )
        for each in history.rebalances
    ]


def rebalances_from_events(history: GroupHistory) -> Rebalances:
    ended: Rebalances = [
        (
            each["started_ms"],
            each["at"],
            each["generation_before"],
            each["generation"],
            each["ending"],
            each["trigger"],
            each["initiator"],
        )
        for each in history.events_named("rebalance-ended")
    ]
    started = history.events_named("rebalance-started")
    assert len(started) - len(ended) in (0, 1)
    for each in started[len(ended) :]:
        in_progress = (each["at"], None, each["generation"], None, None)
        ended.append((*in_progress, each["trigger"], each["initiator"]))
    return ended


def test_labels_agree_with_the_events_of_the_coordinator(generated: GeneratedHistories) -> None:
    for history in generated.groups.values():
        assert labelled_rebalances(history) == rebalances_from_events(history), history.scenario

    assert sum(len(history.rebalances) for history in generated.groups.values()) > 300


def test_labels_agree_with_events_for_another_seed_and_length(tmp_path: Path) -> None:
    generate(HistoryOptions(seed=11, hours=1, partitions=1), tmp_path / "history")

    histories = read_histories(tmp_path / "history")

    for history in histories.values():
        assert labelled_rebalances(history) == rebalances_from_events(history), history.scenario


def test_a_rebalance_in_progress_at_the_end_has_no_end_time() -> None:
    identity = MemberInfo(
        member_id=MemberId("a-1"), instance_id=None, client_id="a", client_host="/h"
    )
    protocols = (Protocol(name="range", metadata=b""),)
    labels = Labels()
    oracle = RebalanceOracle(GroupId("billing"), Scheduler(Millis(1_000)), labels)

    member = OracleMember(
        identity, protocols, session_ms=6_000, rebalance_ms=9_000, last_contact_ms=Millis(0)
    )
    oracle.on_join_request(member, is_new=True)
    oracle.end()

    (line,) = map(json.loads, labels.lines())
    assert (line["started_ms"], line["trigger"]) == (1_000, "member-joined")
    assert line["initiator"]["member_id"] == "a-1"
    assert (line["ended_ms"], line["generation"], line["ending"]) == (None, None, None)


def test_labelled_generations_are_in_the_offsets_topic(generated: GeneratedHistories) -> None:
    for history in generated.groups.values():
        stored = {(at, metadata.generation) for at, metadata in history.generations}
        labelled = {
            (each["ended_ms"], each["generation"])
            for each in history.rebalances
            if each["ending"] in ("stable", "empty")
        }

        assert labelled <= stored, history.scenario
