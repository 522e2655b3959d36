"""How records, events and polled responses change the cluster state."""

from hypothesis import given
from hypothesis import strategies as st

from kohort.admin.group_monitor import ClusterState, GroupQuery, GroupView, Status
from kohort.admin.group_monitor.cluster_state import KEPT_MS, PARTICIPANTS_MAX, SAMPLE_MS
from kohort.admin.group_monitor.monitored_group import REBALANCES_MAX
from kohort.types import GroupId, Millis, Offset
from tests.admin.group_monitor.cluster_records import (
    BILLING,
    NOW,
    at,
    fold_commit,
    fold_event,
    fold_generation,
    polled_group,
    rebalance_ended,
    rebalance_started,
    state_changed,
)


def view_of(state: ClusterState, now_ms: int = NOW, group: GroupId = BILLING) -> GroupView:
    view = state.find_group(group, Millis(now_ms))
    assert view is not None
    return view


def test_a_generation_has_members_and_assignments() -> None:
    state = ClusterState()

    fold_generation(state, 4, {"a": (0, 1), "b": ()}, instances={"b": "rack-2"})

    view = view_of(state)
    assert (view.row.generation, view.row.protocol, view.row.state) == (4, "range", "Stable")
    first, second = view.members
    assert (first.party.client_id, first.is_leader, first.partitions) == (
        "client-a",
        True,
        (at(0), at(1)),
    )
    assert (second.party.instance_id, second.is_leader, second.partitions) == ("rack-2", False, ())


def test_lag_is_the_distance_to_the_log_end_and_never_negative() -> None:
    state = ClusterState()
    fold_commit(state, 0, 90)
    fold_commit(state, 1, 30)
    fold_commit(state, 2, 5)

    state.fold_ends({at(0): Offset(100), at(1): Offset(20)}, Millis(NOW + 1))

    view = view_of(state)
    assert [each.lag for each in view.offsets] == [10, 0, None]
    assert (view.row.lag, view.row.lag_max) == (10, 10)


def test_a_commit_raises_an_older_log_end() -> None:
    state = ClusterState()
    state.fold_ends({at(0): Offset(100)}, NOW)

    fold_commit(state, 0, 120, ms=NOW + 500)

    (reading,) = view_of(state).offsets
    assert (reading.committed, reading.log_end, reading.lag) == (120, 120, 0)


def test_a_tombstone_removes_an_offset() -> None:
    state = ClusterState()
    fold_commit(state, 0, 90)

    fold_commit(state, 0, None)

    assert view_of(state).offsets == ()


def test_a_tombstone_does_not_create_a_group() -> None:
    state = ClusterState()

    fold_commit(state, 0, None)

    assert state.find_group(BILLING, NOW) is None


def test_without_events_a_rebalance_is_the_difference_of_two_generations() -> None:
    state = ClusterState()
    fold_generation(state, 1, {"a": (0,), "b": (1,)}, ms=NOW - 9000)

    fold_generation(state, 2, {"a": (0,), "c": (1,)}, ms=NOW)

    first, second = view_of(state).rebalances
    assert (first.generation_before, second.generation_before) == (None, 1)
    assert not second.is_exact
    assert (second.trigger, second.initiator, second.started_ms) == (None, None, None)
    assert second.newcomers == ("c",)
    assert [each.party.member_id for each in second.removals] == ["b"]


def test_the_same_generation_again_is_not_a_rebalance() -> None:
    state = ClusterState()
    fold_generation(state, 1, {"a": (0,)}, instances={"a": "rack-1"})

    fold_generation(state, 1, {"b": (0,)}, instances={"b": "rack-1"})

    view = view_of(state)
    assert [each.party.member_id for each in view.members] == ["b"]
    assert len(view.rebalances) == 1


def test_an_event_replaces_a_derived_rebalance() -> None:
    state = ClusterState()
    fold_generation(state, 1, {"a": (0,)}, ms=NOW - 5)

    fold_event(state, rebalance_ended(1, {"a": ((), (0,))}))

    (found,) = view_of(state).rebalances
    assert found.is_exact
    assert found.trigger == "member-joined"


def test_the_key_of_a_derived_rebalance_stays_valid_after_its_event() -> None:
    state = ClusterState()
    fold_generation(state, 1, {"a": (0,)}, ms=NOW - 5)
    (before,) = view_of(state).rebalances
    fold_event(state, rebalance_ended(1, {"a": ((), (0,))}))

    found = state.find_rebalance(BILLING, before.key)

    assert found is not None
    assert found.is_exact
    assert state.find_rebalance(BILLING, "12345") is None
    assert state.find_rebalance(BILLING, "nonsense") is None


def test_a_generation_after_its_event_adds_no_rebalance() -> None:
    state = ClusterState()
    fold_event(state, rebalance_ended(1, {"a": ((), (0,))}))

    fold_generation(state, 1, {"a": (0,)}, ms=NOW - 5)

    (found,) = view_of(state).rebalances
    assert found.is_exact


def test_a_rebalance_is_in_progress_until_it_ends() -> None:
    state = ClusterState()
    fold_event(state, rebalance_started(1, "b", ms=NOW - 400))
    fold_event(state, state_changed("PreparingRebalance", ms=NOW - 400))
    during = view_of(state)

    fold_event(state, rebalance_ended(2, {"a": ((), (0,))}))
    fold_event(state, state_changed("Stable"))

    assert (during.row.state, during.state_since_ms) == ("PreparingRebalance", NOW - 400)
    (in_progress,) = during.rebalances
    assert (in_progress.ended_ms, in_progress.trigger) == (None, "member-joined")
    after = view_of(state)
    assert after.row.state == "Stable"
    assert [each.ended_ms for each in after.rebalances] == [NOW]


def test_a_response_older_than_an_event_is_ignored() -> None:
    state = ClusterState()
    fold_generation(state, 1, {"a": (0,)})
    version = state.version
    fold_event(state, state_changed("PreparingRebalance"))

    state.fold_groups([polled_group("Stable")], version, NOW)

    assert view_of(state).row.state == "PreparingRebalance"


def test_a_newer_response_is_applied() -> None:
    state = ClusterState()
    fold_generation(state, 1, {"a": (0,)})

    state.fold_groups([polled_group("PreparingRebalance")], state.version, Millis(NOW + 7))

    view = view_of(state)
    assert (view.row.state, view.state_since_ms) == ("PreparingRebalance", NOW + 7)


def test_a_group_missing_in_the_response_is_removed_unless_it_is_newer() -> None:
    state = ClusterState()
    fold_commit(state, 0, 1, group=GroupId("old"))
    version = state.version
    fold_commit(state, 0, 1, group=GroupId("new"))

    state.fold_groups([], version, NOW)

    assert state.find_group(GroupId("old"), NOW) is None
    assert state.find_group(GroupId("new"), NOW) is not None


def test_groups_of_other_protocol_types_are_ignored() -> None:
    state = ClusterState()

    fold_generation(state, 1, {"worker": ()}, protocol_type="connect")

    assert state.find_group(BILLING, NOW) is None


@given(st.binary() | st.none(), st.binary() | st.none())
def test_an_undecodable_record_is_counted(key: bytes | None, value: bytes | None) -> None:
    state = ClusterState()

    state.fold_record(key, value, NOW)

    assert state.overview(NOW).groups <= 1


def test_trends_have_one_point_per_sample() -> None:
    state = ClusterState()
    fold_commit(state, 0, 0)

    for number in range(4):
        state.fold_ends({at(0): Offset(number * 10)}, Millis(NOW + number * SAMPLE_MS))

    view = view_of(state)
    assert view.lag_trend == (0, 10, 20, 30)
    assert view.offsets[0].trend == (0, 10, 20, 30)
    assert len(view.trend_ms) == 4


def test_polls_between_two_samples_add_no_point() -> None:
    state = ClusterState()
    fold_commit(state, 0, 0)

    for number in range(4):
        state.fold_ends({at(0): Offset(number)}, Millis(NOW + number))

    assert view_of(state).lag_trend == (0,)


def test_a_partition_with_lag_and_an_unchanged_offset_is_stalled() -> None:
    state = ClusterState()
    fold_generation(state, 1, {"a": (0,)}, ms=NOW - 900_000)
    fold_commit(state, 0, 5, ms=NOW - 900_000)
    state.fold_ends({at(0): Offset(5)}, Millis(NOW))

    for number in range(1, 12):
        state.fold_ends({at(0): Offset(9)}, Millis(NOW + number * SAMPLE_MS))

    row = view_of(state, NOW + 12 * SAMPLE_MS).row
    assert (row.status, row.reasons) == (Status.CRITICAL, ("1 partition stalled",))


def test_old_rebalances_are_dropped_except_the_last() -> None:
    state = ClusterState()
    for number in range(1, 6):
        fold_event(state, rebalance_ended(number, {"a": ((), (0,))}, ms=NOW + number * 1000))

    state.fold_ends({}, Millis(NOW + KEPT_MS + 60_000))

    assert [each.generation for each in view_of(state).rebalances] == [5]


def test_the_number_of_kept_participants_is_limited() -> None:
    state = ClusterState()
    members = {f"member-{number}": ((), (number,)) for number in range(1000)}

    for number in range(1, PARTICIPANTS_MAX // 1000 + 10):
        fold_event(state, rebalance_ended(number, members, ms=NOW + number))

    kept = view_of(state).rebalances
    assert sum(len(each.participants) for each in kept) <= PARTICIPANTS_MAX
    assert len(kept) <= REBALANCES_MAX


def test_ten_thousand_groups_are_searched_sorted_and_paged() -> None:
    state = ClusterState()
    for number in range(10_000):
        fold_commit(state, 0, number, group=GroupId(f"team-{number:05}"))
    state.fold_ends({at(0): Offset(10_000)}, NOW)

    most = state.list_groups(GroupQuery(sort="lag", per_page=3), NOW)
    found = state.list_groups(
        GroupQuery(search="TEAM-0999", sort="group", is_descending=False), NOW
    )
    last = state.list_groups(GroupQuery(sort="group", page=999_999), NOW)

    assert [each.lag for each in most.rows] == [10_000, 9_999, 9_998]
    assert (most.found, most.pages) == (10_000, 3_334)
    assert [each.group_id for each in found.rows] == [f"team-0999{digit}" for digit in range(10)]
    assert last.page == last.pages == 200


def test_unknown_values_come_last_in_any_order() -> None:
    state = ClusterState()
    fold_commit(state, 0, 1, group=GroupId("known"))
    fold_commit(state, 9, 1, group=GroupId("unknown"))
    state.fold_ends({at(0): Offset(10)}, NOW)

    for is_descending in (True, False):
        page = state.list_groups(GroupQuery(sort="lag", is_descending=is_descending), NOW)
        assert [each.group_id for each in page.rows] == ["known", "unknown"]


def test_the_overview_counts_states_statuses_and_rebalances() -> None:
    state = ClusterState()
    fold_generation(state, 1, {"a": (0,)}, group=GroupId("other"), ms=NOW - 7_200_000)
    fold_event(state, rebalance_ended(1, {"a": ((), (0,))}))
    state.fold_groups([polled_group("Stable"), polled_group("Empty", GroupId("other"))], 0, NOW)
    state.fold_groups(
        [polled_group("Stable"), polled_group("Empty", GroupId("other"))], state.version, NOW
    )

    found = state.overview(NOW)

    assert dict(found.states) == {"Stable": 1, "Empty": 1}
    assert found.rebalances == 1
    assert found.rebalances_by_minute[-1] == 1
    assert found.recent[0].group_id == BILLING
    assert found.is_exact


def test_readers_are_found_by_topic() -> None:
    state = ClusterState()
    fold_commit(state, 0, 1, topic="refunds")
    fold_generation(state, 1, {"a": (0,)}, group=GroupId("other"))

    assert state.readers() == {"refunds": {BILLING}, "orders": {"other"}}
