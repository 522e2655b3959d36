"""Readers of option values. Each accepts text, as from a file, and most also the value itself."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

T = TypeVar("T")

Address = tuple[str, int]
"""Host and port of a broker."""

INT_MAX: Final = 2**31 - 1
TEXT_BYTES_MAX: Final = 32_767
"""The longest text that a Kafka request can hold."""

_PORT_MAX: Final = 65_535


class BadValue(ValueError):
    """An unknown option, or a value that an option cannot have; the message is a sentence."""


def read_number(given: object, minimum: int | None = None, maximum: int | None = None) -> int:
    """A whole number, at least `minimum` and at most `maximum`."""
    if isinstance(given, str):
        # Python would also take 1_000, and digits of other scripts.
        digits = given.strip().removeprefix("-").removeprefix("+")
        if not digits.isascii() or not digits.isdecimal():
            raise ValueError("not a whole number")
        given = int(given)
    if isinstance(given, bool) or not isinstance(given, int):
        raise ValueError("not a whole number")  # noqa: TRY004 - all invalid values raise ValueError
    check_bounds(given, minimum, maximum)
    return given


def read_decimal(given: str, minimum: float | None = None, maximum: float | None = None) -> float:
    """A decimal number, at least `minimum` and at most `maximum`."""
    try:
        number = float(given if given.isascii() and "_" not in given else "")
    except ValueError:
        raise ValueError("not a number") from None
    check_bounds(number, minimum, maximum)
    return number


def check_bounds(number: float, minimum: float | None, maximum: float | None) -> None:
    if maximum is None:
        if minimum is not None and not minimum <= number:
            raise ValueError(f"less than {minimum}")
    elif not (minimum is None or minimum <= number) or not number <= maximum:
        raise ValueError(f"not between {minimum} and {maximum}")


def read_flag(given: object) -> bool:
    if isinstance(given, str) and given.strip().lower() in ("true", "false"):
        return given.strip().lower() == "true"
    if not isinstance(given, bool):
        raise ValueError("neither true nor false")  # noqa: TRY004
    return given


def read_text(given: object) -> str | None:
    """Text of a length that fits into a request, or None."""
    if given is None:
        return None
    if not isinstance(given, str):
        raise ValueError("not text")  # noqa: TRY004
    if not given:
        raise ValueError("empty")
    if len(given.encode()) > TEXT_BYTES_MAX:
        raise ValueError(f"too long: at most {TEXT_BYTES_MAX} bytes")
    return given


def read_choice(given: object, choices: Iterable[T]) -> T:
    """One of these words, spelled exactly. Returns the choice itself, such as an enum's member."""
    choices = tuple(choices)
    for choice in choices:
        if given == choice:
            return choice
    raise ValueError(f"none of {', '.join(map(str, choices))}")


def read_word(given: object, words: Mapping[str, T], shown: Iterable[str]) -> T:
    """The value of a word, ignoring case. Several words may have the same value."""
    if not isinstance(given, str) or given.lower() not in words:
        raise ValueError(f"none of {', '.join(shown)}")
    return words[given.lower()]


def read_function(given: object) -> object:
    if given is not None and not callable(given):
        raise ValueError("not callable")
    return given


def read_list(text: str) -> tuple[str, ...]:
    """Names with commas between them; empty ones are left out."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def read_address(given: object, port_min: int = 1) -> Address:
    """HOST:PORT, also with a scheme in front or with an IPv6 host in brackets."""
    text = given.strip() if isinstance(given, str) else ""
    host, separator, port = text.rpartition("://")[2].rpartition(":")
    is_port = port.isascii() and port.isdecimal() and port_min <= int(port) <= _PORT_MAX
    if not separator or not host or not is_port:
        raise ValueError(f"{given!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


def read_addresses(given: object) -> tuple[Address, ...]:
    """From "host:port,host:port", or a list of such."""
    texts = given.split(",") if isinstance(given, str) else given
    if not isinstance(texts, Iterable):
        raise ValueError("not a list of addresses")  # noqa: TRY004
    addresses = tuple(read_address(text) for text in texts)
    if not addresses:
        raise ValueError("empty list of addresses")
    return addresses


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of an error message: the most similar of the known names, if one is similar."""
    from difflib import get_close_matches  # noqa: PLC0415  # only needed for an error

    near = get_close_matches(name, list(known), 1, 0.5)
    return f"; did you mean {near[0]}?" if near else ""


def read_pairs(pairs: Iterable[str], option: str, *, may_repeat: bool = False) -> dict[str, str]:
    """NAME=VALUE words that were given with a command's option.

    A repeated name is refused; with `may_repeat` the last value wins.
    """
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip()
        if not equals or not name:
            raise BadValue(f"{option} {pair!r} is not NAME=VALUE")
        if name in found and not may_repeat:
            raise BadValue(f"{option} {name} is given twice")
        found[name] = text.strip()
    return found
