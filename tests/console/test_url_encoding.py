"""Every name has exactly one path segment, and decodes to itself."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.console.url_encoding import from_segment, group_path, to_segment, with_query

NAMES = st.text() | st.sampled_from(["", ".", "..", "a.json", "a.feed", "~", "~7E", "a/b", "%2F"])


@given(NAMES)
def test_decoding_inverts_encoding(name: str) -> None:
    assert from_segment(to_segment(name)) == name


@given(NAMES)
def test_a_segment_has_only_unreserved_characters(name: str) -> None:
    segment = to_segment(name)

    assert re.fullmatch(r"[A-Za-z0-9._~-]+", segment)
    assert segment not in {".", ".."}
    assert not segment.endswith((".json", ".feed"))


@given(NAMES, NAMES)
def test_different_names_have_different_segments(one: str, other: str) -> None:
    assert (to_segment(one) == to_segment(other)) == (one == other)


@pytest.mark.parametrize("segment", ["", "~4", "~zz", "~41", "a b", "~FF", "~2e~2e", "é"])
def test_an_invalid_segment_is_rejected(segment: str) -> None:
    assert from_segment(segment) is None


def test_plain_names_stay_readable() -> None:
    assert group_path("team.billing-v2") == "/groups/team.billing-v2"
    assert group_path("team/billing") == "/groups/team~2Fbilling"


def test_a_query_omits_empty_parameters() -> None:
    assert with_query("/groups", {"search": "", "page": 2, "sort": None}) == "/groups?page=2"
    assert with_query("/groups", {"search": ""}) == "/groups"
