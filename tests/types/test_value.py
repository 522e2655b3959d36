"""Value classes behave like keyword-only dataclasses, although methods are compiled lazily."""

from dataclasses import dataclass, field, fields, replace
from typing import Any

import pytest

from kohort.types import value


@value
class Point:
    x: int
    y: int = 2


@value(kw_only=False)
class Pair:
    x: int
    y: int = 2


@dataclass(slots=True)
class DataclassPair:
    """What Python itself makes of the same declaration."""

    x: int
    y: int = 2


@value
class WithList:
    """A class with a docstring."""

    items: list[int] = field(default_factory=list)


@value
class WithoutFields:
    pass


@value
class WithRepr:
    x: int

    def __repr__(self) -> str:
        return "me!"


@dataclass(slots=True, kw_only=True)
class DataclassPoint:
    """What Python itself makes of the same declaration."""

    x: int
    y: int = 2


def test_keyword_arguments_and_defaults() -> None:
    assert (Point(x=1).x, Point(x=1).y, Point(y=5, x=4).y) == (1, 2, 5)
    assert replace(Point(x=1), x=3) == Point(x=3)


@pytest.mark.parametrize("given", [{}, {"y": 1}, {"x": 1, "z": 2}])
def test_missing_or_unknown_argument_is_a_type_error(given: dict[str, Any]) -> None:
    with pytest.raises(TypeError) as ours:
        Point(**given)
    with pytest.raises(TypeError) as theirs:
        DataclassPoint(**given)

    assert str(ours.value) == str(theirs.value).replace("DataclassPoint", "Point")


def test_default_factory_is_called_per_instance() -> None:
    first, second = WithList(), WithList()

    first.items.append(1)

    assert second.items == []
    assert WithList(items=[7]).items == [7]


def test_equality_by_fields() -> None:
    assert Point(x=1) == Point(x=1, y=2)
    assert Point(x=1) != Point(x=1, y=3)
    assert Point(x=1) != DataclassPoint(x=1)
    assert WithoutFields() == WithoutFields()


def test_values_are_not_hashable() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(x=1))


def test_repr_shows_fields_unless_overridden() -> None:
    assert repr(Point(x=1)) == repr(DataclassPoint(x=1)).replace("DataclassPoint", "Point")
    assert repr(WithoutFields()) == "WithoutFields()"
    assert repr(WithRepr(x=1)) == "me!"


def test_values_have_slots() -> None:
    with pytest.raises(AttributeError):
        Point(x=1).__setattr__("z", 3)


def test_match_statement_and_dataclass_fields() -> None:
    match Point(x=1):
        case Point(x=1, y=y):
            assert y == 2
        case _:
            pytest.fail("not matched")
    assert [each.name for each in fields(Point)] == ["x", "y"]
    assert WithList.__doc__ == "A class with a docstring."


def test_positional_value_accepts_positions_and_keywords() -> None:
    assert Pair(1, 3) == Pair(x=1, y=3)
    assert Pair(1) == Pair(1, 2) == Pair(1, y=2)
    assert repr(Pair(1)) == "Pair(x=1, y=2)"


@pytest.mark.parametrize("given", [(), (1, 2, 3)])
def test_positional_value_rejects_a_wrong_number_of_arguments(given: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError) as ours:
        Pair(*given)
    with pytest.raises(TypeError) as theirs:
        DataclassPair(*given)

    assert str(ours.value) == str(theirs.value).replace("DataclassPair", "Pair")


def test_keyword_only_value_rejects_positional_arguments() -> None:
    make: Any = Point

    with pytest.raises(TypeError):
        make(1, 2)
