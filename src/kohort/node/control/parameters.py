"""Reads the parameters of a control operation. Those of an HTTP query are strings."""

from collections.abc import Mapping
from typing import Any, TypeVar

from kohort.node.control.errors import ControlError

T = TypeVar("T")


class Parameters:
    """Each parameter is read once; `finish` refuses those that were not read."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._left = {name: given for name, given in body.items() if given is not None}
        self._known: list[str] = []

    def find_text(self, name: str) -> str | None:
        given = self._take(name)
        if given is not None and not isinstance(given, str):
            raise ControlError(f"{name} must be text, but it is {given!r}")
        return given

    def get_text(self, name: str) -> str:
        return _required(name, self.find_text(name))

    def get_texts(self, name: str) -> tuple[str, ...]:
        """One value, a list, or text with commas."""
        given = _required(name, self._take(name))
        items = given if isinstance(given, list | tuple) else str(given).split(",")
        texts = tuple(str(each).strip() for each in items)
        if not texts or not all(texts):
            raise ControlError(f"{name} must name at least one, but it is {given!r}")
        return texts

    def find_integer(self, name: str, *, at_least: int) -> int | None:
        given = self._take(name)
        if given is None:
            return None
        try:
            number = int(str(given))
        except ValueError:
            raise ControlError(f"{name} must be an integer, but it is {given!r}") from None
        if number < at_least:
            raise ControlError(f"{name} must be at least {at_least}, but it is {number}")
        return number

    def get_integer(self, name: str, *, at_least: int) -> int:
        return _required(name, self.find_integer(name, at_least=at_least))

    def get_seconds(self, name: str, default: float | None = None) -> float:
        given = self._take(name)
        given = default if given is None else given
        try:
            seconds = float(str(_required(name, given)))
        except ValueError:
            raise ControlError(f"{name} must be a number of seconds, but it is {given!r}") from None
        if not 0 < seconds < float("inf"):
            raise ControlError(f"{name} must be more than 0 seconds, but it is {given!r}")
        return seconds

    def get_flag(self, name: str) -> bool:
        """False if it is not given."""
        given = str(self._take(name) or False).lower()
        if given not in ("true", "false"):
            raise ControlError(f"{name} must be true or false, but it is {given!r}")
        return given == "true"

    def finish(self) -> None:
        if self._left:
            raise ControlError(
                f"unknown parameters: {', '.join(self._left)}; this operation has"
                f" {', '.join(self._known) or 'none'}"
            )

    def _take(self, name: str) -> Any:
        self._known.append(name)
        return self._left.pop(name, None)


def _required(name: str, given: T | None) -> T:
    if given is None:
        raise ControlError(f"the parameter {name} is missing")
    return given
