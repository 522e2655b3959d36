"""The compact form of the details has the same content."""

from kohort.pipeline.forensics.report.page import pack
from kohort.pipeline.forensics.report.report_model import EmptyPeriod
from tests.pipeline.forensics.report.samples import (
    START_MS,
    detail,
    identity,
    owned,
    rebalance,
    report,
    unstable_group,
)


def test_neighbouring_partitions_are_a_run() -> None:
    held = owned("worker-1-1", 0, 9, 0, 1, 2, 5, 7, 8)
    (details,) = report(unstable_group(), details=(detail(ownership=(held,)),)).details

    packed = pack(details, START_MS)

    assert packed["partitions"] == [
        "orders-0",
        "orders-1",
        "orders-2",
        "orders-5",
        "orders-7",
        "orders-8",
    ]
    assert packed["ownership"] == [[1, 0, 9000, None, [0, 6]]]


def test_partitions_apart_are_several_runs() -> None:
    held = (owned("worker-1-1", 0, 9, 0, 1, 4), owned("worker-7-2", 0, None, 2, 3))
    (details,) = report(unstable_group(), details=(detail(ownership=held),)).details

    packed = pack(details, START_MS)

    assert [each[4] for each in packed["ownership"]] == [[0, 2, 4, 1], [2, 2]]


def test_clients_are_numbers_and_their_names_appear_once() -> None:
    stranger = rebalance(
        initiator=identity("passer-by"), joined=(identity("worker-1"),), joined_total=1
    )
    (details,) = report(unstable_group(), details=(detail(rebalances=(stranger,)),)).details

    packed = pack(details, START_MS)

    row = dict(zip(packed["rebalances"]["columns"], packed["rebalances"]["rows"][0], strict=True))
    names = packed["names"]
    assert names[row["initiator"]] == "passer-by at /10.0.0.1"
    assert [names[each] for each in row["joined"]] == ["worker-1 at /10.0.0.1"]
    assert len(names) == len(set(names))


def test_an_owner_is_named_as_its_membership_is() -> None:
    held = (owned("worker-7-2", 0, 1, 0), owned("unheard-3", 1, 2, 0))
    (details,) = report(unstable_group(), details=(detail(ownership=held),)).details

    packed = pack(details, START_MS)

    owners = [packed["names"][each[0]] for each in packed["ownership"]]
    assert owners == ["worker-7 at /10.0.0.1", "unheard"]
    assert packed["lagging_partitions"]["rows"][0][
        packed["lagging_partitions"]["columns"].index("owner")
    ] == ("worker-1 at /10.0.0.1")


def test_times_are_relative_to_the_start_of_the_report() -> None:
    away = detail(empty_periods=(EmptyPeriod(from_ms=START_MS + 5000, to_ms=None),))
    (details,) = report(unstable_group(rebalances=2), details=(away,)).details

    packed = pack(details, START_MS)

    assert packed["empty_periods"] == [{"from_ms": 5000, "to_ms": None}]
    assert packed["shown_from"] == 0
    assert packed["lag"][0] == [60_000, 10, 1.5]
