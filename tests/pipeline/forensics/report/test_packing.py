"""A story in few bytes says what the story says."""

from kohort.pipeline.forensics.report.material import Absence
from kohort.pipeline.forensics.report.packing import pack
from tests.pipeline.forensics.report.samples import (
    DAWN_MS,
    detail,
    party,
    rebalance,
    report,
    restless,
    stretch,
)


def test_neighbouring_partitions_are_a_run() -> None:
    held = stretch("worker-1-1", 0, 9, 0, 1, 2, 5, 7, 8)
    (story,) = report(restless(), details=(detail(stretches=(held,)),)).stories

    packed = pack(story, DAWN_MS)

    assert packed["places"] == [
        "orders-0",
        "orders-1",
        "orders-2",
        "orders-5",
        "orders-7",
        "orders-8",
    ]
    assert packed["stretches"] == [[1, 0, 9000, None, [0, 6]]]


def test_partitions_apart_are_several_runs() -> None:
    held = (stretch("worker-1-1", 0, 9, 0, 1, 4), stretch("worker-7-2", 0, None, 2, 3))
    (story,) = report(restless(), details=(detail(stretches=held),)).stories

    packed = pack(story, DAWN_MS)

    assert [each[4] for each in packed["stretches"]] == [[0, 2, 4, 1], [2, 2]]


def test_programs_are_numbers_and_their_names_are_told_once() -> None:
    stranger = rebalance(culprit=party("passer-by"), joined=(party("worker-1"),), joined_total=1)
    (story,) = report(restless(), details=(detail(rebalances=(stranger,)),)).stories

    packed = pack(story, DAWN_MS)

    row = dict(zip(packed["rebalances"]["columns"], packed["rebalances"]["rows"][0], strict=True))
    names = packed["names"]
    assert names[row["culprit"]] == "passer-by at /10.0.0.1"
    assert [names[each] for each in row["joined"]] == ["worker-1 at /10.0.0.1"]
    assert len(names) == len(set(names))


def test_an_owner_is_named_as_its_membership_is() -> None:
    held = (stretch("worker-7-2", 0, 1, 0), stretch("unheard-3", 1, 2, 0))
    (story,) = report(restless(), details=(detail(stretches=held),)).stories

    packed = pack(story, DAWN_MS)

    owners = [packed["names"][each[0]] for each in packed["stretches"]]
    assert owners == ["worker-7 at /10.0.0.1", "unheard"]
    assert packed["laggards"]["rows"][0][packed["laggards"]["columns"].index("owner")] == (
        "worker-1 at /10.0.0.1"
    )


def test_times_count_from_the_beginning_of_the_report() -> None:
    away = detail(absences=(Absence(from_ms=DAWN_MS + 5000, to_ms=None),))
    (story,) = report(restless(rebalances=2), details=(away,)).stories

    packed = pack(story, DAWN_MS)

    assert packed["absences"] == [{"from_ms": 5000, "to_ms": None}]
    assert packed["shown_from"] == 0
    assert packed["lag"][0] == [60_000, 10, 1.5]
