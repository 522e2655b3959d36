"""Whether an answer tells an error: the first one in it, however deep, found by its declaration."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from kohort.wire.schema import schema_of

Find = Callable[[Any], int]

_ERROR: Final = "error_code"


class Finders(dict[type, Find]):
    """By message, each made when it is first answered with: gives the first error, else 0."""

    def __missing__(self, cls: type) -> Find:
        made = self[cls] = _finder(cls) or _nothing
        return made


FINDERS: Final = Finders()


def _finder(cls: type) -> Find | None:
    """None where a message has no place for an error."""
    finders: list[Find] = []
    for field in schema_of(cls).fields:
        if field.name == _ERROR:
            finders.append(attrgetter(_ERROR))
        elif field.element is not None and field.element.struct is not None:
            inner = _finder(field.element.struct)
            if inner is not None:
                has_only_its_own = isinstance(inner, attrgetter)
                within = _directly_within if has_only_its_own else _within
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
    """The same without a call for each item: a fetch may have a thousand."""

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


def _nothing(_: Any) -> int:
    return 0
