"""The picture as a fold: what each record, event and answer changes."""

from hypothesis import given
from hypothesis import strategies as st

from kohort.admin.picture import GroupView, GroupWish, Need, Picture
from kohort.admin.picture.book import REBALANCES_MAX
from kohort.admin.picture.picture import KEPT_MS, SAMPLE_MS, WEIGHT_MAX
from kohort.types import GroupId, Millis, Offset
from tests.admin.picture.folding import (
    BILLING,
    NOW,
    at,
    commit,
    ended,
    form,
    listed,
    started,
    state,
    tell,
)


def see(picture: Picture, now_ms: int = NOW, group: GroupId = BILLING) -> GroupView:
    view = picture.find_group(group, Millis(now_ms))
    assert view is not None
    return view


def test_a_generation_tells_members_and_what_they_hold() -> None:
    picture = Picture()

    form(picture, 4, {"a": (0, 1), "b": ()}, instances={"b": "rack-2"})

    view = see(picture)
    assert (view.row.generation, view.row.protocol, view.row.state) == (4, "range", "Stable")
    first, second = view.members
    assert (first.party.client_id, first.is_leader, first.holds) == (
        "client-a",
        True,
        (at(0), at(1)),
    )
    assert (second.party.instance_id, second.is_leader, second.holds) == ("rack-2", False, ())


def test_lag_is_the_distance_to_the_end_and_never_negative() -> None:
    picture = Picture()
    commit(picture, 0, 90)
    commit(picture, 1, 30)
    commit(picture, 2, 5)

    picture.fold_ends({at(0): Offset(100), at(1): Offset(20)}, Millis(NOW + 1))

    view = see(picture)
    assert [each.lag for each in view.readings] == [10, 0, None]
    assert (view.row.lag, view.row.lag_max) == (10, 10)


def test_an_end_that_is_older_than_a_commit_is_at_least_the_commit() -> None:
    picture = Picture()
    picture.fold_ends({at(0): Offset(100)}, NOW)

    commit(picture, 0, 120, ms=NOW + 500)

    (reading,) = see(picture).readings
    assert (reading.committed, reading.log_end, reading.lag) == (120, 120, 0)


def test_a_removed_offset_is_gone() -> None:
    picture = Picture()
    commit(picture, 0, 90)

    commit(picture, 0, None)

    assert see(picture).readings == ()


def test_a_tombstone_of_an_unknown_group_makes_no_group() -> None:
    picture = Picture()

    commit(picture, 0, None)

    assert picture.find_group(BILLING, NOW) is None


def test_without_events_a_rebalance_is_the_difference_of_two_generations() -> None:
    picture = Picture()
    form(picture, 1, {"a": (0,), "b": (1,)}, ms=NOW - 9000)

    form(picture, 2, {"a": (0,), "c": (1,)}, ms=NOW)

    first, second = see(picture).rebalances
    assert (first.generation_before, second.generation_before) == (None, 1)
    assert not second.is_exact
    assert (second.trigger, second.culprit, second.started_ms) == (None, None, None)
    assert second.newcomers == ("c",)
    assert [each.party.member_id for each in second.removals] == ["b"]


def test_the_same_generation_written_again_is_no_rebalance() -> None:
    picture = Picture()
    form(picture, 1, {"a": (0,)}, instances={"a": "rack-1"})

    form(picture, 1, {"b": (0,)}, instances={"b": "rack-1"})

    view = see(picture)
    assert [each.party.member_id for each in view.members] == ["b"]
    assert len(view.rebalances) == 1


def test_an_event_is_better_than_what_was_worked_out() -> None:
    picture = Picture()
    form(picture, 1, {"a": (0,)}, ms=NOW - 5)

    tell(picture, ended(1, {"a": ((), (0,))}))

    (told,) = see(picture).rebalances
    assert told.is_exact
    assert told.trigger == "member-joined"


def test_a_rebalance_that_was_worked_out_is_found_by_its_key_when_an_event_has_told_it() -> None:
    picture = Picture()
    form(picture, 1, {"a": (0,)}, ms=NOW - 5)
    (before,) = see(picture).rebalances
    tell(picture, ended(1, {"a": ((), (0,))}))

    found = picture.find_rebalance(BILLING, before.key)

    assert found is not None
    assert found.is_exact
    assert picture.find_rebalance(BILLING, "12345") is None
    assert picture.find_rebalance(BILLING, "nonsense") is None


def test_what_an_event_has_told_is_not_worked_out_again() -> None:
    picture = Picture()
    tell(picture, ended(1, {"a": ((), (0,))}))

    form(picture, 1, {"a": (0,)}, ms=NOW - 5)

    (told,) = see(picture).rebalances
    assert told.is_exact


def test_a_rebalance_is_under_way_until_it_ends() -> None:
    picture = Picture()
    tell(picture, started(1, "b", ms=NOW - 400))
    tell(picture, state("PreparingRebalance", ms=NOW - 400))
    during = see(picture)

    tell(picture, ended(2, {"a": ((), (0,))}))
    tell(picture, state("Stable"))

    assert (during.row.state, during.state_since_ms) == ("PreparingRebalance", NOW - 400)
    (under_way,) = during.rebalances
    assert (under_way.ended_ms, under_way.trigger) == (None, "member-joined")
    after = see(picture)
    assert after.row.state == "Stable"
    assert [each.ended_ms for each in after.rebalances] == [NOW]


def test_an_answer_that_is_older_than_an_event_does_not_count() -> None:
    picture = Picture()
    form(picture, 1, {"a": (0,)})
    asked_at = picture.version
    tell(picture, state("PreparingRebalance"))

    picture.fold_groups([listed("Stable")], asked_at, NOW)

    assert see(picture).row.state == "PreparingRebalance"


def test_a_newer_answer_counts() -> None:
    picture = Picture()
    form(picture, 1, {"a": (0,)})

    picture.fold_groups([listed("PreparingRebalance")], picture.version, Millis(NOW + 7))

    view = see(picture)
    assert (view.row.state, view.state_since_ms) == ("PreparingRebalance", NOW + 7)


def test_a_group_that_is_not_listed_is_gone_unless_it_is_newer_than_the_answer() -> None:
    picture = Picture()
    commit(picture, 0, 1, group=GroupId("old"))
    asked_at = picture.version
    commit(picture, 0, 1, group=GroupId("new"))

    picture.fold_groups([], asked_at, NOW)

    assert picture.find_group(GroupId("old"), NOW) is None
    assert picture.find_group(GroupId("new"), NOW) is not None


def test_groups_that_are_not_of_consumers_are_left_alone() -> None:
    picture = Picture()

    form(picture, 1, {"worker": ()}, protocol_type="connect")

    assert picture.find_group(BILLING, NOW) is None


@given(st.binary() | st.none(), st.binary() | st.none())
def test_a_record_that_makes_no_sense_is_counted_and_nothing_else(
    key: bytes | None, value: bytes | None
) -> None:
    picture = Picture()

    picture.fold_record(key, value, NOW)

    assert picture.overview(NOW).groups <= 1


def test_trends_have_a_point_for_every_look() -> None:
    picture = Picture()
    commit(picture, 0, 0)

    for number in range(4):
        picture.fold_ends({at(0): Offset(number * 10)}, Millis(NOW + number * SAMPLE_MS))

    view = see(picture)
    assert view.lag_trend == (0, 10, 20, 30)
    assert view.readings[0].trend == (0, 10, 20, 30)
    assert len(view.trend_ms) == 4


def test_looks_between_two_points_add_none() -> None:
    picture = Picture()
    commit(picture, 0, 0)

    for number in range(4):
        picture.fold_ends({at(0): Offset(number)}, Millis(NOW + number))

    assert see(picture).lag_trend == (0,)


def test_a_partition_whose_offset_stays_while_there_is_something_to_read_is_stalled() -> None:
    picture = Picture()
    form(picture, 1, {"a": (0,)}, ms=NOW - 900_000)
    commit(picture, 0, 5, ms=NOW - 900_000)
    picture.fold_ends({at(0): Offset(5)}, Millis(NOW))

    for number in range(1, 12):
        picture.fold_ends({at(0): Offset(9)}, Millis(NOW + number * SAMPLE_MS))

    row = see(picture, NOW + 12 * SAMPLE_MS).row
    assert (row.need, row.reasons) == (Need.NOW, ("1 partition does not move",))


def test_old_rebalances_are_forgotten_but_for_the_last() -> None:
    picture = Picture()
    for number in range(1, 6):
        tell(picture, ended(number, {"a": ((), (0,))}, ms=NOW + number * 1000))

    picture.fold_ends({}, Millis(NOW + KEPT_MS + 60_000))

    assert [each.generation for each in see(picture).rebalances] == [5]


def test_what_is_kept_of_rebalances_has_a_limit() -> None:
    picture = Picture()
    crowd = {f"member-{number}": ((), (number,)) for number in range(1000)}

    for number in range(1, WEIGHT_MAX // 1000 + 10):
        tell(picture, ended(number, crowd, ms=NOW + number))

    kept = see(picture).rebalances
    assert sum(len(each.participants) for each in kept) <= WEIGHT_MAX
    assert len(kept) <= REBALANCES_MAX


def test_ten_thousand_groups_are_found_sorted_and_paged() -> None:
    picture = Picture()
    for number in range(10_000):
        commit(picture, 0, number, group=GroupId(f"team-{number:05}"))
    picture.fold_ends({at(0): Offset(10_000)}, NOW)

    most = picture.list_groups(GroupWish(sort="lag", per_page=3), NOW)
    found = picture.list_groups(
        GroupWish(search="TEAM-0999", sort="group", is_descending=False), NOW
    )
    last = picture.list_groups(GroupWish(sort="group", page=999_999), NOW)

    assert [each.lag for each in most.rows] == [10_000, 9_999, 9_998]
    assert (most.found, most.pages) == (10_000, 3_334)
    assert [each.group_id for each in found.rows] == [f"team-0999{digit}" for digit in range(10)]
    assert last.page == last.pages == 200


def test_what_is_not_known_is_last_in_any_order() -> None:
    picture = Picture()
    commit(picture, 0, 1, group=GroupId("known"))
    commit(picture, 9, 1, group=GroupId("unknown"))
    picture.fold_ends({at(0): Offset(10)}, NOW)

    for is_descending in (True, False):
        page = picture.list_groups(GroupWish(sort="lag", is_descending=is_descending), NOW)
        assert [each.group_id for each in page.rows] == ["known", "unknown"]


def test_the_overview_counts_states_needs_and_rebalances() -> None:
    picture = Picture()
    form(picture, 1, {"a": (0,)}, group=GroupId("other"), ms=NOW - 7_200_000)
    tell(picture, ended(1, {"a": ((), (0,))}))
    picture.fold_groups([listed("Stable"), listed("Empty", GroupId("other"))], 0, NOW)
    picture.fold_groups([listed("Stable"), listed("Empty", GroupId("other"))], picture.version, NOW)

    told = picture.overview(NOW)

    assert dict(told.states) == {"Stable": 1, "Empty": 1}
    assert told.rebalances == 1
    assert told.rebalances_by_minute[-1] == 1
    assert told.recent[0].group_id == BILLING
    assert told.is_exact


def test_readers_are_found_by_topic() -> None:
    picture = Picture()
    commit(picture, 0, 1, topic="refunds")
    form(picture, 1, {"a": (0,)}, group=GroupId("other"))

    assert picture.readers() == {"refunds": {BILLING}, "orders": {"other"}}
