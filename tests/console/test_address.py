"""Any name has an address of one part, and every address has one name."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.console.address import from_address, group_path, to_address, with_query

NAMES = st.text() | st.sampled_from(["", ".", "..", "a.json", "a.feed", "~", "~7E", "a/b", "%2F"])


@given(NAMES)
def test_every_name_comes_back(name: str) -> None:
    assert from_address(to_address(name)) == name


@given(NAMES)
def test_an_address_is_one_plain_part(name: str) -> None:
    part = to_address(name)

    assert re.fullmatch(r"[A-Za-z0-9._~-]+", part)
    assert part not in {".", ".."}
    assert not part.endswith((".json", ".feed"))


@given(NAMES, NAMES)
def test_two_names_have_two_addresses(one: str, other: str) -> None:
    assert (to_address(one) == to_address(other)) == (one == other)


@pytest.mark.parametrize("part", ["", "~4", "~zz", "~41", "a b", "~FF", "~2e~2e", "é"])
def test_what_is_no_address_has_no_name(part: str) -> None:
    assert from_address(part) is None


def test_plain_names_stay_readable() -> None:
    assert group_path("team.billing-v2") == "/groups/team.billing-v2"
    assert group_path("team/billing") == "/groups/team~2Fbilling"


def test_a_query_leaves_out_what_says_nothing() -> None:
    assert with_query("/groups", {"search": "", "page": 2, "sort": None}) == "/groups?page=2"
    assert with_query("/groups", {"search": ""}) == "/groups"
