"""Two recordings of one conversation, compared exchange by exchange and field by field.

A difference may be tolerated only under a deviation that the script names at that very place, and
a deviation that shows no difference is a fault as well: it hides something, or is out of date.
"""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final

from kohort.types import value
from tests.contract.conversations.masking import Json
from tests.contract.conversations.showing import WORDS

_ABSENT: Final = "(absent)"

FURTHER_WORDS: Final = "whatever is refused is refused with a reason"
"""Everywhere, Kohort may give a reason where Kafka gives none; the other way round is a fault."""


@value
class Deviation:
    """A place where brokers are known to differ: why, and in which fields."""

    because: str
    fields: tuple[str, ...]


@value
class Exchange:
    """One question and what came back, masked. Without a version, the one that is varied."""

    who: str
    api: str
    version: int | None
    asked: Json
    answer: Json
    deviation: Deviation | None = None


@value
class Difference:
    """A field in which they differ. An exchange that is missing differs as a whole."""

    step: int
    field: str
    expected: Json
    found: Json


@value
class Verdict:
    """What differs without a reason, which tolerances were needless, which reasons were used."""

    differences: tuple[Difference, ...]
    needless: tuple[tuple[int, str], ...]
    tolerated: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        return not self.differences and not self.needless

    def explain(self) -> str:
        lines = [
            f"step {each.step}: {each.field}: expected {each.expected!r}, found {each.found!r}"
            for each in self.differences
        ]
        lines += [
            f"step {step}: no difference in {field}; the tolerance is needless"
            for step, field in self.needless
        ]
        return "\n".join(lines)


def compare(
    expected: Sequence[Exchange], found: Sequence[Exchange], *, is_same_broker: bool = False
) -> Verdict:
    """What was found, beside what was expected. A broker does not deviate from itself."""
    differences: list[Difference] = []
    needless: list[tuple[int, str]] = []
    tolerated: list[str] = []
    for step, (theirs, ours) in enumerate(zip(expected, found, strict=False), start=1):
        deviation = None if is_same_broker else ours.deviation
        patterns = deviation.fields if deviation else ()
        used: set[str] = set()
        for each in _differences(step, theirs, ours):
            excuses = [pattern for pattern in patterns if fnmatchcase(each.field, pattern)]
            used.update(excuses)
            if _is_further_word(each) and not is_same_broker:
                tolerated.append(FURTHER_WORDS)
            elif not excuses:
                differences.append(each)
        if used and deviation:
            tolerated.append(deviation.because)
        needless += [(step, pattern) for pattern in patterns if pattern not in used]
    differences += _missing(expected, found)
    return Verdict(
        differences=tuple(differences),
        needless=tuple(needless),
        tolerated=tuple(dict.fromkeys(tolerated)),
    )


def _is_further_word(difference: Difference) -> bool:
    return difference.found == WORDS and difference.expected in (_ABSENT, None)


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
