"""Comparing finds every difference, forgives only what is named, and nothing that is not there."""

from tests.contract.conversations.comparing import (
    FURTHER_WORDS,
    Deviation,
    Exchange,
    Verdict,
    compare,
)
from tests.contract.conversations.masking import Json
from tests.contract.conversations.showing import WORDS


def exchange(answer: Json, *tolerated: str, asked: Json = None) -> Exchange:
    deviation = Deviation(because="for a reason", fields=tolerated) if tolerated else None
    return Exchange(
        who="a", api="Heartbeat", version=4, asked=asked, answer=answer, deviation=deviation
    )


def verdict(expected: Json, found: Json, *tolerated: str) -> Verdict:
    return compare([exchange(expected, *tolerated)], [exchange(found, *tolerated)])


def test_what_is_equal_is_clean() -> None:
    answer: Json = {"error_code": "NONE", "topics": [{"name": "t", "offset": 3}]}

    assert verdict(answer, answer).is_clean


def test_a_field_that_differs_is_found_by_its_path() -> None:
    found = verdict({"topics": [{"name": "t", "offset": 3}]}, {"topics": [{"name": "t"}]})

    (difference,) = found.differences
    assert (difference.step, difference.field) == (1, "answer.topics.0.offset")
    assert (difference.expected, difference.found) == (3, "(absent)")
    assert "step 1: answer.topics.0.offset: expected 3, found '(absent)'" in found.explain()


def test_a_list_of_another_length_differs_as_a_whole() -> None:
    (difference,) = verdict({"members": [1]}, {"members": [1, 2]}).differences

    assert difference.field == "answer.members"


def test_a_number_is_not_the_truth() -> None:
    assert not verdict({"read_only": True}, {"read_only": 1}).is_clean


def test_another_question_is_a_difference() -> None:
    found = compare([exchange(None, asked={"epoch": 1})], [exchange(None, asked={"epoch": 2})])

    assert [each.field for each in found.differences] == ["asked.epoch"]


def test_an_exchange_too_many_or_too_few_is_a_difference() -> None:
    one = exchange({"error_code": "NONE"})

    assert not compare([one], []).is_clean
    assert not compare([], [one]).is_clean
    assert not compare([], [], is_same_broker=True).differences


def test_a_difference_that_is_named_is_tolerated() -> None:
    found = verdict({"code": 1, "rest": 2}, {"code": 9, "rest": 2}, "answer.code")

    assert found.is_clean
    assert found.tolerated == ("for a reason",)


def test_a_difference_beside_the_named_one_is_not() -> None:
    found = verdict({"code": 1, "rest": 2}, {"code": 9, "rest": 3}, "answer.code")

    assert [each.field for each in found.differences] == ["answer.rest"]


def test_a_tolerance_without_a_difference_is_needless() -> None:
    found = verdict({"code": 1, "rest": 2}, {"code": 1, "rest": 3}, "answer.code", "answer.rest")

    assert not found.is_clean
    assert found.needless == ((1, "answer.code"),)
    assert "the tolerance is needless" in found.explain()


def test_a_pattern_covers_what_is_below_it() -> None:
    found = verdict({"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 4}}, "answer.a.*")

    assert found.is_clean


def test_a_tolerance_the_recording_does_not_know_is_a_difference() -> None:
    found = compare([exchange({"code": 1})], [exchange({"code": 2}, "answer.code")])

    assert [each.field for each in found.differences] == ["deviation"]


def test_a_broker_does_not_deviate_from_itself() -> None:
    expected, found = exchange({"code": 1}, "answer.code"), exchange({"code": 2}, "answer.code")

    assert not compare([expected], [found], is_same_broker=True).is_clean
    assert compare([expected], [expected], is_same_broker=True).is_clean


def test_a_reason_more_is_welcome_and_a_reason_less_is_not() -> None:
    more = verdict({"code": 1}, {"code": 1, "error_message": WORDS})
    less = verdict({"code": 1, "error_message": WORDS}, {"code": 1, "error_message": None})

    assert more.is_clean
    assert more.tolerated == (FURTHER_WORDS,)
    assert not less.is_clean
