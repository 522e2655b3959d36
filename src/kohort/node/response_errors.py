"""Finds the first error code in a response message, at any depth, by its schema."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from kohort.wire.schema import schema_of

Find = Callable[[Any], int]

_ERROR: Final = "error_code"


class ErrorFinders(dict[type, Find]):
    """By message class, created on first use. A finder returns the first error code, else 0."""

    def __missing__(self, cls: type) -> Find:
        finder = self[cls] = _make_finder(cls) or _find_nothing
        return finder


ERROR_FINDERS: Final = ErrorFinders()


def _make_finder(cls: type) -> Find | None:
    """Return None if the message has no error code."""
    finders: list[Find] = []
    for field in schema_of(cls).fields:
        if field.name == _ERROR:
            finders.append(attrgetter(_ERROR))
        elif field.element is not None and field.element.struct is not None:
            inner = _make_finder(field.element.struct)
            if inner is not None:
                is_direct = isinstance(inner, attrgetter)
                within = _directly_within if is_direct else _within
                finders.append(within(attrgetter(field.name), inner))
    if len(finders) <= 1:
        return finders[0] if finders else None
    return _first(tuple(finders))


def _within(items: Callable[[Any], Any], inner: Find) -> Find:
    def find(message: Any) -> int:
        for each in items(message) or ():
            code = inner(each)
            if code:
                return code
        return 0

    return find


def _directly_within(items: Callable[[Any], Any], _: Find) -> Find:
    """Like `_within`, without a call per item: a fetch may have a thousand."""

    def find(message: Any) -> int:
        for each in items(message) or ():
            if each.error_code:
                code: int = each.error_code
                return code
        return 0

    return find


def _first(finders: tuple[Find, ...]) -> Find:
    def find(message: Any) -> int:
        for each in finders:
            code = each(message)
            if code:
                return code
        return 0

    return find


def _find_nothing(_: Any) -> int:
    return 0
