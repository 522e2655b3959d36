"""An option: its name, default, kind, meaning and reader. Tables of them also make the docs."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from kohort.settings.readers import (
    BadValue,
    did_you_mean,
    read_choice,
    read_flag,
    read_function,
    read_number,
    read_text,
    read_word,
)
from kohort.types import value

NUMBER = "number"
FLAG = "true or false"


@value
class Option:
    name: str
    """With dots, as Kafka writes it."""
    default: Any
    read: Callable[[Any], Any]
    """Returns the typed value, or raises ValueError with the reason."""
    kind: str
    meaning: str
    aliases: tuple[str, ...] = ()
    """The names in other client libraries."""

    @property
    def keyword(self) -> str:
        return self.name.replace(".", "_")

    def parse(self, given: object) -> Any:
        """Like `read`, but the error names the option and what it takes."""
        try:
            return self.read(given)
        except ValueError as error:
            kind = "a number" if self.kind == NUMBER else self.kind
            raise BadValue(f"{self.name}={given!r}: {error}; it takes {kind}") from None


def get_option(options: Mapping[str, Option], name: str, what: str = "option") -> Option:
    """The option of this name; the error for an unknown name proposes a similar one."""
    option = options.get(name)
    if option is None:
        raise BadValue(f"there is no {what} {name}{did_you_mean(name, options)}")
    return option


def number(
    name: str,
    default: int,
    meaning: str,
    *,
    minimum: int = 0,
    maximum: int | None = None,
    aliases: tuple[str, ...] = (),
) -> Option:
    return Option(
        name=name,
        default=default,
        read=partial(read_number, minimum=minimum, maximum=maximum),
        kind=NUMBER,
        meaning=meaning,
        aliases=aliases,
    )


def flag(name: str, meaning: str, *, default: bool) -> Option:
    return Option(name=name, default=default, read=read_flag, kind=FLAG, meaning=meaning)


def text(name: str, default: str | None, meaning: str) -> Option:
    return Option(name=name, default=default, read=read_text, kind="text", meaning=meaning)


def function(name: str, meaning: str) -> Option:
    return Option(name=name, default=None, read=read_function, kind="function", meaning=meaning)


def choice(name: str, default: str, choices: Iterable[str], meaning: str) -> Option:
    """One of some words, spelled exactly."""
    choices = tuple(choices)
    return Option(
        name=name,
        default=default,
        read=partial(read_choice, choices=choices),
        kind=" or ".join(choices),
        meaning=meaning,
    )


def word(
    name: str, default: str, words: Mapping[str, str], meaning: str, *, shown: Iterable[str]
) -> Option:
    """One of some words in any case; several may mean the same, and `shown` are the usual ones."""
    shown = tuple(shown)
    return Option(
        name=name,
        default=default,
        read=partial(read_word, words=words, shown=shown),
        kind=" or ".join(shown),
        meaning=meaning,
    )
