"""Many answers that make one: called back when the last of them has come."""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def gather(count: int, finish: Callable[[list[T]], None]) -> Callable[[int, T], None]:
    """Returns `collect(index, answer)`; `finish` gets the answers in the order of their index."""
    answers: dict[int, T] = {}

    def collect(index: int, answer: T) -> None:
        answers[index] = answer
        if len(answers) == count:
            finish([answers[each] for each in range(count)])

    return collect
