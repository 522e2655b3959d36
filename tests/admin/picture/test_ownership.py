"""Who held which partition, from the rebalances of a group."""

from kohort.admin.picture import Picture
from kohort.admin.picture.ownership import find_moves, find_stretches
from kohort.types import Millis
from tests.admin.picture.folding import BILLING, NOW, at, ended, form, tell


def stretches(picture: Picture) -> list[tuple[str, int, int | None, int | None]]:
    view = picture.find_group(BILLING, NOW)
    assert view is not None
    return sorted(
        (each.party.member_id, each.partition.partition, each.from_ms, each.to_ms)
        for each in find_stretches(view.rebalances)
    )


def test_an_owner_that_keeps_its_partition_holds_it_all_the_time() -> None:
    picture = Picture()
    tell(picture, ended(1, {"a": ((), (0, 1))}, ms=NOW - 9000))

    tell(picture, ended(2, {"a": ((0, 1), (0,)), "b": ((), (1,))}, ms=NOW - 5000, took_ms=1000))

    assert stretches(picture) == [
        ("a", 0, NOW - 9000, None),
        ("a", 1, NOW - 9000, NOW - 6000),
        ("b", 1, NOW - 5000, None),
    ]


def test_what_was_held_before_the_first_known_rebalance_has_no_beginning() -> None:
    picture = Picture()

    tell(picture, ended(7, {"a": ((0, 1), (0,)), "b": ((), (1,))}, took_ms=1000))

    assert stretches(picture) == [
        ("a", 0, None, None),
        ("a", 1, None, NOW - 1000),
        ("b", 1, NOW, None),
    ]


def test_a_rebalance_that_was_cut_short_moves_nothing() -> None:
    picture = Picture()
    tell(picture, ended(1, {"a": ((), (0,))}, ms=NOW - 9000))

    tell(picture, ended(2, {"a": ((0,), ())}, ms=NOW - 5000, ending="interrupted"))

    assert stretches(picture) == [("a", 0, NOW - 9000, None)]


def test_when_nobody_is_left_everything_ends() -> None:
    picture = Picture()
    tell(picture, ended(1, {"a": ((), (0,))}, ms=NOW - 9000))

    tell(picture, ended(2, {}, ms=NOW - 5000, took_ms=0, ending="empty"))

    assert stretches(picture) == [("a", 0, NOW - 9000, NOW - 5000)]


def test_without_events_a_partition_goes_when_the_next_generation_is_formed() -> None:
    picture = Picture()
    form(picture, 1, {"a": (0, 1)}, ms=NOW - 9000)

    form(picture, 2, {"a": (0,), "b": (1,)}, ms=NOW - 5000)

    assert stretches(picture) == [
        ("a", 0, NOW - 9000, None),
        ("a", 1, NOW - 9000, NOW - 5000),
        ("b", 1, NOW - 5000, None),
    ]


def test_a_static_member_that_restarts_is_the_same_owner() -> None:
    picture = Picture()
    form(picture, 1, {"a": (0,)}, ms=NOW - 9000, instances={"a": "rack-1"})

    form(picture, 2, {"b": (0,)}, ms=NOW - 5000, instances={"b": "rack-1"})

    ((_, _, since, until),) = stretches(picture)
    assert (since, until) == (NOW - 9000, None)


def test_moves_are_partitions_with_another_owner() -> None:
    picture = Picture()
    tell(picture, ended(2, {"a": ((0, 1, 2), (0,)), "b": ((), (1, 2))}))
    found = picture.find_rebalance(BILLING, str(NOW - 500))
    assert found is not None

    moves = find_moves(found)

    assert [each.partition for each in moves] == [at(1), at(2)]
    assert {each.after and each.after.member_id for each in moves} == {"b"}
    assert Millis(NOW) == found.ended_ms
