"""Values behave as keyword-only dataclasses do, though their methods come late."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

import pytest

from kohort.types import maker, value


@value
class Point:
    x: int
    y: int = 2


@value
class Sack:
    """It has a story."""

    things: list[int] = field(default_factory=list)


@value
class Nothing:
    pass


@value
class Outspoken:
    x: int

    def __repr__(self) -> str:
        return "me!"


@dataclass(slots=True, kw_only=True)
class Peer:
    """What Python itself makes of the same declaration."""

    x: int
    y: int = 2


def test_a_value_is_made_by_name_with_its_defaults() -> None:
    assert (Point(x=1).x, Point(x=1).y, Point(y=5, x=4).y) == (1, 2, 5)
    assert replace(Point(x=1), x=3) == Point(x=3)


@pytest.mark.parametrize("given", [{}, {"y": 1}, {"x": 1, "z": 2}])
def test_what_is_missing_or_unknown_is_named(given: dict[str, Any]) -> None:
    with pytest.raises(TypeError) as ours:
        Point(**given)
    with pytest.raises(TypeError) as theirs:
        Peer(**given)

    assert str(ours.value) == str(theirs.value).replace("Peer", "Point")


def test_a_default_that_is_made_is_made_for_each() -> None:
    first, second = Sack(), Sack()

    first.things.append(1)

    assert second.things == []
    assert Sack(things=[7]).things == [7]


def test_values_are_equal_if_all_their_fields_are() -> None:
    assert Point(x=1) == Point(x=1, y=2)
    assert Point(x=1) != Point(x=1, y=3)
    assert Point(x=1) != Peer(x=1)
    assert Nothing() == Nothing()


def test_values_cannot_be_keys() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(x=1))


def test_a_value_shows_its_fields_unless_it_shows_itself() -> None:
    assert repr(Point(x=1)) == repr(Peer(x=1)).replace("Peer", "Point")
    assert repr(Nothing()) == "Nothing()"
    assert repr(Outspoken(x=1)) == "me!"


def test_a_value_has_no_room_for_anything_else() -> None:
    with pytest.raises(AttributeError):
        Point(x=1).__setattr__("z", 3)


def test_a_value_is_matched_by_name_and_tells_its_fields() -> None:
    match Point(x=1):
        case Point(x=1, y=y):
            assert y == 2
        case _:
            pytest.fail("not matched")
    assert [each.name for each in fields(Point)] == ["x", "y"]
    assert Sack.__doc__ == "It has a story."


def test_a_maker_takes_all_fields_in_their_order() -> None:
    assert maker(Point)(1, 3) == Point(x=1, y=3)
    assert maker(Nothing)() == Nothing()
    with pytest.raises(TypeError):
        maker(Point)(1)
