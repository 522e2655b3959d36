"""A comparison finds every difference, and tolerates exactly the declared ones."""

from tests.contract.conversations.comparison import (
    ADDITIONAL_MESSAGE,
    Deviation,
    Exchange,
    Verdict,
    compare,
)
from tests.contract.conversations.masks import Json
from tests.contract.conversations.message_tree import MESSAGE


def exchange(answer: Json, *tolerated: str, asked: Json = None) -> Exchange:
    deviation = Deviation(because="a reason", fields=tolerated) if tolerated else None
    return Exchange(
        who="a", api="Heartbeat", version=4, asked=asked, answer=answer, deviation=deviation
    )


def verdict(expected: Json, found: Json, *tolerated: str) -> Verdict:
    return compare([exchange(expected, *tolerated)], [exchange(found, *tolerated)])


def test_equal_exchanges_have_no_difference() -> None:
    answer: Json = {"error_code": "NONE", "topics": [{"name": "t", "offset": 3}]}

    assert verdict(answer, answer).is_clean


def test_a_difference_is_reported_with_its_path() -> None:
    found = verdict({"topics": [{"name": "t", "offset": 3}]}, {"topics": [{"name": "t"}]})

    (difference,) = found.differences
    assert (difference.step, difference.field) == (1, "answer.topics.0.offset")
    assert (difference.expected, difference.found) == (3, "(absent)")
    assert "step 1: answer.topics.0.offset: expected 3, found '(absent)'" in found.explain()


def test_lists_of_different_length_differ_as_a_whole() -> None:
    (difference,) = verdict({"members": [1]}, {"members": [1, 2]}).differences

    assert difference.field == "answer.members"


def test_a_number_differs_from_a_boolean() -> None:
    assert not verdict({"read_only": True}, {"read_only": 1}).is_clean


def test_another_request_is_a_difference() -> None:
    found = compare([exchange(None, asked={"epoch": 1})], [exchange(None, asked={"epoch": 2})])

    assert [each.field for each in found.differences] == ["asked.epoch"]


def test_additional_and_missing_exchanges_are_differences() -> None:
    one = exchange({"error_code": "NONE"})

    assert not compare([one], []).is_clean
    assert not compare([], [one]).is_clean
    assert not compare([], [], is_same_broker=True).differences


def test_a_declared_difference_is_tolerated() -> None:
    found = verdict({"code": 1, "rest": 2}, {"code": 9, "rest": 2}, "answer.code")

    assert found.is_clean
    assert found.tolerated == ("a reason",)


def test_an_undeclared_difference_is_not_tolerated() -> None:
    found = verdict({"code": 1, "rest": 2}, {"code": 9, "rest": 3}, "answer.code")

    assert [each.field for each in found.differences] == ["answer.rest"]


def test_a_declared_difference_must_occur() -> None:
    found = verdict({"code": 1, "rest": 2}, {"code": 1, "rest": 3}, "answer.code", "answer.rest")

    assert not found.is_clean
    assert found.unused == ((1, "answer.code"),)
    assert "remove the declared deviation" in found.explain()


def test_a_pattern_matches_nested_fields() -> None:
    found = verdict({"a": {"b": 1, "c": 2}}, {"a": {"b": 3, "c": 4}}, "answer.a.*")

    assert found.is_clean


def test_a_declaration_that_is_not_recorded_is_a_difference() -> None:
    found = compare([exchange({"code": 1})], [exchange({"code": 2}, "answer.code")])

    assert [each.field for each in found.differences] == ["deviation"]


def test_the_same_broker_has_no_tolerated_differences() -> None:
    expected, found = exchange({"code": 1}, "answer.code"), exchange({"code": 2}, "answer.code")

    assert not compare([expected], [found], is_same_broker=True).is_clean
    assert compare([expected], [expected], is_same_broker=True).is_clean


def test_an_additional_error_message_is_tolerated_and_a_missing_one_is_not() -> None:
    more = verdict({"code": 1}, {"code": 1, "error_message": MESSAGE})
    less = verdict({"code": 1, "error_message": MESSAGE}, {"code": 1, "error_message": None})

    assert more.is_clean
    assert more.tolerated == (ADDITIONAL_MESSAGE,)
    assert not less.is_clean
