"""Conversations as scripts tell them: a function whose name is a sentence, and what it varies.

A conversation that varies an API is held once in every version of it that is served; all other
requests are sent in their newest version.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

from kohort.node.dispatch import SERVED
from kohort.types import value
from kohort.wire.schema import schema_of
from tests.contract.conversations.comparing import Exchange
from tests.contract.conversations.talking import Side, Talk

SCRIPTS: Final = Path(__file__).parent / "scripts"

USUAL: Final = "usual"

_LAST: Final = 10**6


@value
class Conversation:
    """One behaviour. `house` names the settings that both brokers are run with."""

    file: str
    sentence: str
    house: str
    varied: type | None
    versions: tuple[int | None, ...]
    script: Callable[[Talk], None]

    def hold(self, side: Side, version: int | None) -> list[Exchange]:
        """Have it with that broker; what was said so far is on the error if it breaks off."""
        with Talk(side, self.varied, version) as talk:
            try:
                self.script(talk)
            except Exception as error:
                said = "\n".join(f"{step}. {each}" for step, each in enumerate(talk.exchanges, 1))
                error.add_note(f"{self.sentence}, version {version}, after:\n{said}")
                raise
            return talk.exchanges


def conversation(
    *,
    vary: type | None = None,
    since: int = 0,
    until: int = _LAST,
    house: str = USUAL,
) -> Callable[[Callable[[Talk], None]], Conversation]:
    """Make a conversation of a function; with `vary`, of every served version in those bounds."""

    def declare(script: Callable[[Talk], None]) -> Conversation:
        return Conversation(
            file=script.__module__.rpartition(".")[2],
            sentence=script.__name__.replace("_", " "),
            house=house,
            varied=vary,
            versions=_versions(vary, since, until),
            script=script,
        )

    return declare


@cache
def find_conversations() -> tuple[Conversation, ...]:
    """All there are, file by file, in the order they are written."""
    found: list[Conversation] = []
    for path in sorted(SCRIPTS.glob("*.py")):
        module = import_module(f"tests.contract.conversations.scripts.{path.stem}")
        found += [each for each in vars(module).values() if isinstance(each, Conversation)]
    return tuple(found)


def _versions(vary: type | None, since: int, until: int) -> tuple[int | None, ...]:
    if vary is None:
        return (None,)
    api_key = schema_of(vary).api_key
    assert api_key is not None, f"{vary.__name__} is no request"
    return tuple(version for version in SERVED[api_key] if since <= version <= until)
