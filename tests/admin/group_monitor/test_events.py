"""Rebalances from events, and invalid events."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kohort.admin.group_monitor.cluster_state import ClusterState
from tests.admin.group_monitor.cluster_records import NOW, at, rebalance_ended, rebalance_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_an_ended_event_has_all_fields_of_a_rebalance() -> None:
    found = rebalance_of(rebalance_ended(3, {"a": ((0, 1), (0,)), "b": ((), (1,))}))

    assert (found.generation_before, found.generation, found.is_exact) == (2, 3, True)
    assert (found.started_ms, found.joined_ms, found.ended_ms) == (NOW - 500, NOW - 20, NOW)
    assert found.key == str(NOW - 500)
    first, second = found.participants
    assert (first.had, first.got) == ((at(0), at(1)), (at(0),))
    assert (second.had, second.got) == ((), (at(1),))


@given(
    JSON
    | st.builds(lambda fields: {**rebalance_ended(1, {"a": ((), (0,))}), **fields}, st.just({}))
)
def test_any_record_of_the_events_topic_is_accepted(found: Any) -> None:
    state = ClusterState()

    state.fold_event(json.dumps(found).encode())

    assert state.has_events
