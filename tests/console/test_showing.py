"""Bytes, values and pictures as pages show them: pure, and harmless whatever is in them."""

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.admin.picture import Picture
from kohort.console import charts, telling
from kohort.console.browsing import SHOWN_BYTES, show
from kohort.console.jsonable import dump, jsonable
from kohort.types import Millis
from tests.admin.picture.folding import BILLING, NOW, at, ended, form, started, tell


@given(st.binary(max_size=300))
def test_bytes_are_shown_as_text_only_if_every_sign_can_be_seen(data: bytes) -> None:
    shown = show(data)

    assert shown is not None
    assert shown.size == len(data)
    if shown.is_text:
        assert shown.text.encode() == data
        hidden = {"Cc", "Cf", "Cs", "Co", "Cn"}
        assert not any(
            unicodedata.category(sign) in hidden for sign in shown.text if sign not in "\n\r\t"
        )
    else:
        assert bytes.fromhex(shown.text) == data


def test_long_bytes_are_cut_and_say_so() -> None:
    whole = show(b"x" * SHOWN_BYTES)
    cut = show("é".encode() * SHOWN_BYTES)
    odd = show(b"x" + "é".encode() * SHOWN_BYTES)

    assert whole is not None
    assert not whole.is_cut
    for each in (cut, odd):
        assert each is not None
        assert each.is_cut
        assert each.is_text
        assert len(each.text.encode()) <= SHOWN_BYTES


def test_null_is_not_shown_as_anything() -> None:
    assert show(None) is None


def test_a_sign_that_turns_text_round_is_not_shown_as_text() -> None:
    shown = show("abc\u202edcba".encode())

    assert shown is not None
    assert not shown.is_text


@given(
    st.recursive(
        st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_json_in_a_page_cannot_end_it(told: Any) -> None:
    text = dump(told)

    assert json.loads(text) == told
    assert not set("<>&\u2028\u2029\n") & set(text)


def test_half_a_surrogate_is_no_reason_to_fail() -> None:
    assert json.loads(dump("\udc80")) == "\udc80"
    assert dump("\udc80").encode()


def test_values_have_their_own_names_in_json() -> None:
    assert jsonable(at(3)) == {"topic": "orders", "partition": 3}
    assert jsonable((at(3),)) == [{"topic": "orders", "partition": 3}]
    with pytest.raises(TypeError):
        jsonable(object())


def test_a_line_has_gaps_where_nothing_is_known() -> None:
    assert charts.spark_line([0, 10, None, 5], 30, 12) == "M0.0 11.0L10.0 1.0M30.0 6.0"
    assert charts.spark_line([], 30, 12) == ""


def test_bars_are_as_high_as_their_number() -> None:
    assert charts.spark_bars([0, 2, 4], 30, 11) == "M10.0 11v-5.0h7.0V11zM20.0 11v-10.0h7.0V11z"


def test_a_program_that_comes_back_is_drawn_as_the_same_one() -> None:
    picture = Picture()
    form(picture, 1, {"old": (0,)}, ms=NOW - 9000)
    form(picture, 2, {}, ms=NOW - 8000)
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
    tell(picture, {**ended(3, {}, ms=NOW), **again})
    view = picture.find_group(BILLING, NOW)
    assert view is not None

    drawn = charts.timeline(view, NOW)

    assert drawn["names"] == ["client-old"]
    assert [each[0] for each in drawn["stretches"]] == [0, 0]


def test_two_programs_of_one_name_at_once_are_drawn_as_two() -> None:
    picture = Picture()
    form(picture, 1, {"a": (0,), "b": (1,)})
    view = picture.find_group(BILLING, NOW)
    assert view is not None
    twins = [each.party for each in view.members]

    drawn = charts.timeline(view, NOW)

    assert len(drawn["names"]) == len(twins) == 2


@pytest.mark.parametrize(
    ("numbers", "words"),
    [((), ""), ((0,), "orders 0"), ((0, 1), "orders 0, 1"), ((0, 1, 2, 5), "orders 0-2, 5")],
)
def test_partitions_are_told_in_runs(numbers: tuple[int, ...], words: str) -> None:
    assert telling.places([at(each) for each in numbers]) == words


def test_a_rebalance_is_told_from_its_beginning_to_its_end() -> None:
    picture = Picture()
    tell(picture, ended(2, {"a": ((0, 1), (0,)), "b": ((), (1,))}))
    found = picture.find_rebalance(BILLING, str(NOW - 500))
    assert found is not None

    words = " ".join(telling.story(found))

    assert words == (
        "It began because a new member joined: client-a. The group was Stable. "
        "The client gave as its reason: “scaled up”. "
        "The join phase took 480 ms and ended when everybody had joined. "
        "Generation 2 was formed with 2 members under range; 1 partition moved."
    )


def test_one_that_is_under_way_says_so() -> None:
    picture = Picture()
    tell(picture, started(2, "b"))
    found = picture.find_rebalance(BILLING, str(NOW))
    assert found is not None

    assert telling.took(found) == "under way"
    assert telling.story(found)[-1] == "It is under way; 1 member had to join again."


def test_without_events_it_is_said_what_cannot_be_known() -> None:
    picture = Picture()
    form(picture, 1, {"a": (0,)}, ms=NOW - 9)
    form(picture, 2, {"b": (0,)}, ms=NOW)
    found = picture.find_rebalance(BILLING, str(NOW))
    assert found is not None

    assert telling.why(found) == (
        "1 member went, 1 member came and 1 partition moved; what began it is not known here"
    )
    assert telling.kind_of(found) == "unknown"
    assert Millis(NOW) == found.ended_ms
