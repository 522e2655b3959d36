"""Compares two recordings of a conversation, exchange by exchange and field by field.

A difference is tolerated only if the script declares it as a deviation for that exchange. A
declared deviation without a difference is an error, too: it is out of date.
"""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final

from kohort.types import value
from tests.contract.conversations.masks import Json
from tests.contract.conversations.message_tree import MESSAGE

_ABSENT: Final = "(absent)"

ADDITIONAL_MESSAGE: Final = "Kohort sends one with every error"
"""Kohort may send an error message where Kafka sends none; the opposite is a difference."""


@value
class Deviation:
    """A known difference between the brokers: the reason and the fields."""

    because: str
    fields: tuple[str, ...]


@value
class Exchange:
    """A request and its response, masked. The version is None if the conversation varies it."""

    who: str
    api: str
    version: int | None
    asked: Json
    answer: Json
    deviation: Deviation | None = None


@value
class Difference:
    """A field that differs. A missing exchange differs as a whole."""

    step: int
    field: str
    expected: Json
    found: Json


@value
class Verdict:
    """Undeclared differences, declarations without a difference, and the reasons that applied."""

    differences: tuple[Difference, ...]
    unused: tuple[tuple[int, str], ...]
    tolerated: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        return not self.differences and not self.unused

    def explain(self) -> str:
        lines = [
            f"step {each.step}: {each.field}: expected {each.expected!r}, found {each.found!r}"
            for each in self.differences
        ]
        lines += [
            f"step {step}: no difference in {field}; remove the declared deviation"
            for step, field in self.unused
        ]
        return "\n".join(lines)


def compare(
    expected: Sequence[Exchange], found: Sequence[Exchange], *, is_same_broker: bool = False
) -> Verdict:
    """Compare the exchanges. The same broker has no tolerated differences."""
    differences: list[Difference] = []
    unused: list[tuple[int, str]] = []
    tolerated: list[str] = []
    for step, (theirs, ours) in enumerate(zip(expected, found, strict=False), start=1):
        deviation = None if is_same_broker else ours.deviation
        patterns = deviation.fields if deviation else ()
        used: set[str] = set()
        for each in _differences(step, theirs, ours):
            matching = [pattern for pattern in patterns if fnmatchcase(each.field, pattern)]
            used.update(matching)
            if _is_additional_message(each) and not is_same_broker:
                tolerated.append(ADDITIONAL_MESSAGE)
            elif not matching:
                differences.append(each)
        if used and deviation:
            tolerated.append(deviation.because)
        unused += [(step, pattern) for pattern in patterns if pattern not in used]
    differences += _missing(expected, found)
    return Verdict(
        differences=tuple(differences),
        unused=tuple(unused),
        tolerated=tuple(dict.fromkeys(tolerated)),
    )


def _is_additional_message(difference: Difference) -> bool:
    return difference.found == MESSAGE and difference.expected in (_ABSENT, None)


def _differences(step: int, expected: Exchange, found: Exchange) -> Iterator[Difference]:
    for name in ("who", "api", "version", "deviation"):
        before, after = getattr(expected, name), getattr(found, name)
        if before != after:
            yield Difference(step=step, field=name, expected=str(before), found=str(after))
    for name in ("asked", "answer"):
        yield from _differ(step, name, getattr(expected, name), getattr(found, name))


def _differ(step: int, field: str, expected: Json, found: Json) -> Iterator[Difference]:
    match expected, found:
        case dict(), dict():
            for name in dict.fromkeys((*expected, *found)):
                yield from _differ(
                    step,
                    f"{field}.{name}",
                    expected.get(name, _ABSENT),
                    found.get(name, _ABSENT),
                )
        case list(), list() if len(expected) == len(found):
            for index, (before, after) in enumerate(zip(expected, found, strict=True)):
                yield from _differ(step, f"{field}.{index}", before, after)
        case _ if expected != found or type(expected) is not type(found):
            yield Difference(step=step, field=field, expected=expected, found=found)
        case _:
            pass


def _missing(expected: Sequence[Exchange], found: Sequence[Exchange]) -> Iterator[Difference]:
    shorter = min(len(expected), len(found))
    for step, each in enumerate(expected[shorter:], start=shorter + 1):
        yield Difference(step=step, field=each.api, expected=each.answer, found=_ABSENT)
    for step, each in enumerate(found[shorter:], start=shorter + 1):
        yield Difference(step=step, field=each.api, expected=_ABSENT, found=each.answer)
