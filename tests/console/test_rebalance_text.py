"""Text, JSON and charts of pages: pure, and safe for any content."""

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.admin.group_monitor import ClusterState
from kohort.console import charts, rebalance_text
from kohort.console.json_values import dump, jsonable
from kohort.console.record_decoder import SHOWN_BYTES, ShownBytes, show
from kohort.types import Millis
from tests.admin.group_monitor.cluster_records import (
    BILLING,
    NOW,
    at,
    fold_event,
    fold_generation,
    rebalance_ended,
    rebalance_started,
)


def show_field(data: bytes) -> ShownBytes:
    return show(data[:SHOWN_BYTES], len(data))


@given(st.binary(max_size=300))
def test_bytes_are_shown_as_text_only_if_every_character_is_visible(data: bytes) -> None:
    shown = show_field(data)

    assert shown is not None
    assert shown.size == len(data)
    if shown.is_text:
        assert shown.text.encode() == data
        hidden = {"Cc", "Cf", "Cs", "Co", "Cn"}
        assert not any(
            unicodedata.category(char) in hidden for char in shown.text if char not in "\n\r\t"
        )
    else:
        assert bytes.fromhex(shown.text) == data


def test_long_bytes_are_truncated_and_marked() -> None:
    whole = show_field(b"x" * SHOWN_BYTES)
    cut = show_field("é".encode() * SHOWN_BYTES)
    odd = show_field(b"x" + "é".encode() * SHOWN_BYTES)

    assert whole is not None
    assert not whole.is_cut
    for each in (cut, odd):
        assert each is not None
        assert each.is_cut
        assert each.is_text
        assert len(each.text.encode()) <= SHOWN_BYTES


def test_a_bidirectional_control_character_is_not_shown_as_text() -> None:
    shown = show_field("abc\u202edcba".encode())

    assert shown is not None
    assert not shown.is_text


@given(
    st.recursive(
        st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_json_in_a_page_cannot_close_its_script_element(data: Any) -> None:
    rebalance_text = dump(data)

    assert json.loads(rebalance_text) == data
    assert not set("<>&\u2028\u2029\n") & set(rebalance_text)


def test_a_lone_surrogate_can_be_dumped() -> None:
    assert json.loads(dump("\udc80")) == "\udc80"
    assert dump("\udc80").encode()


def test_dataclass_fields_become_json_names() -> None:
    assert jsonable(at(3)) == {"topic": "orders", "partition": 3}
    assert jsonable((at(3),)) == [{"topic": "orders", "partition": 3}]
    with pytest.raises(TypeError):
        jsonable(object())


def test_a_line_has_gaps_for_unknown_values() -> None:
    assert charts.spark_line([0, 10, None, 5], 30, 12) == "M0.0 11.0L10.0 1.0M30.0 6.0"
    assert charts.spark_line([], 30, 12) == ""


def test_bar_heights_are_proportional() -> None:
    assert charts.spark_bars([0, 2, 4], 30, 11) == "M10.0 11v-5.0h7.0V11zM20.0 11v-10.0h7.0V11z"


def test_a_process_that_rejoins_keeps_its_color() -> None:
    state = ClusterState()
    fold_generation(state, 1, {"old": (0,)}, ms=NOW - 9000)
    fold_generation(state, 2, {}, ms=NOW - 8000)
    again = {
        "participants": [
            {
                "party": {
                    "member_id": "new",
                    "instance_id": None,
                    "client_id": "client-old",
                    "client_host": "/10.0.0.1",
                },
                "join_took_ms": 1,
                "sync_took_ms": 1,
                "had": {},
                "got": {"orders": [0]},
            }
        ]
    }
    fold_event(state, {**rebalance_ended(3, {}, ms=NOW), **again})
    view = state.find_group(BILLING, NOW)
    assert view is not None

    chart = charts.timeline(view, NOW)

    assert chart["names"] == ["client-old"]
    assert [each[0] for each in chart["intervals"]] == [0, 0]


def test_two_members_with_the_same_name_at_the_same_time_have_two_colors() -> None:
    state = ClusterState()
    fold_generation(state, 1, {"a": (0,), "b": (1,)})
    view = state.find_group(BILLING, NOW)
    assert view is not None
    members = [each.party for each in view.members]

    chart = charts.timeline(view, NOW)

    assert len(chart["names"]) == len(members) == 2


@pytest.mark.parametrize(
    ("numbers", "words"),
    [((), ""), ((0,), "orders 0"), ((0, 1), "orders 0-1"), ((0, 1, 2, 5), "orders 0-2, 5")],
)
def test_partitions_are_shown_as_ranges(numbers: tuple[int, ...], words: str) -> None:
    assert rebalance_text.partitions_text([at(each) for each in numbers]) == words


def test_the_summary_of_a_rebalance_has_cause_phases_and_result() -> None:
    state = ClusterState()
    fold_event(state, rebalance_ended(2, {"a": ((0, 1), (0,)), "b": ((), (1,))}))
    found = state.find_rebalance(BILLING, str(NOW - 500))
    assert found is not None

    words = " ".join(rebalance_text.summary(found))

    assert words == (
        "Cause: client-a joined. The group was Stable. "
        "Reason given by the client: “scaled up”. "
        "The join phase took 480 ms and ended when all members had joined. "
        "Generation 2 has 2 members, assignor range; 1 partition was reassigned."
    )


def test_the_summary_of_a_rebalance_in_progress() -> None:
    state = ClusterState()
    fold_event(state, rebalance_started(2, "b"))
    found = state.find_rebalance(BILLING, str(NOW))
    assert found is not None

    assert rebalance_text.took(found) == "in progress"
    assert (
        rebalance_text.summary(found)[-1] == "The rebalance is in progress; 1 member must rejoin."
    )


def test_without_events_the_changes_are_shown_and_the_cause_is_not_recorded() -> None:
    state = ClusterState()
    fold_generation(state, 1, {"a": (0,)}, ms=NOW - 9)
    fold_generation(state, 2, {"b": (0,)}, ms=NOW)
    found = state.find_rebalance(BILLING, str(NOW))
    assert found is not None

    assert rebalance_text.why(found) == "client-a left, client-b joined; 1 partition was reassigned"
    assert rebalance_text.summary(found)[0] == (
        "Client-a left, client-b joined; 1 partition was reassigned. "
        "This broker does not record the cause."
    )
    assert rebalance_text.kind_of(found) == "unknown"
    assert Millis(NOW) == found.ended_ms
