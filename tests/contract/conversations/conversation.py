"""A conversation: a script function whose name is a sentence, and the API that it varies.

A conversation that varies an API runs once for every served version of it; all other requests use
their newest version.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Final

from kohort.node.dispatch import SERVED
from kohort.types import value
from kohort.wire.schema import schema_of
from tests.contract.conversations.comparison import Exchange
from tests.contract.conversations.session import BrokerAddress, Session

SCRIPTS: Final = Path(__file__).parent / "scripts"

DEFAULT: Final = "default"

_LAST: Final = 10**6


@value
class Conversation:
    """One behaviour. `profile` names the settings of both brokers."""

    file: str
    sentence: str
    profile: str
    varied: type | None
    versions: tuple[int | None, ...]
    script: Callable[[Session], None]

    def run(self, address: BrokerAddress, version: int | None) -> list[Exchange]:
        """Run the script on a broker; an error has the exchanges so far as a note."""
        with Session(address, self.varied, version) as session:
            try:
                self.script(session)
            except Exception as error:
                history = "\n".join(
                    f"{step}. {each}" for step, each in enumerate(session.exchanges, 1)
                )
                error.add_note(f"{self.sentence}, version {version}, after:\n{history}")
                raise
            return session.exchanges


def conversation(
    *,
    vary: type | None = None,
    since: int = 0,
    until: int = _LAST,
    profile: str = DEFAULT,
) -> Callable[[Callable[[Session], None]], Conversation]:
    """Decorator for scripts; with `vary`, for every served version within the bounds."""

    def declare(script: Callable[[Session], None]) -> Conversation:
        return Conversation(
            file=script.__module__.rpartition(".")[2],
            sentence=script.__name__.replace("_", " "),
            profile=profile,
            varied=vary,
            versions=_versions(vary, since, until),
            script=script,
        )

    return declare


@cache
def find_conversations() -> tuple[Conversation, ...]:
    """All conversations, in the order of the files."""
    found: list[Conversation] = []
    for path in sorted(SCRIPTS.glob("*.py")):
        module = import_module(f"tests.contract.conversations.scripts.{path.stem}")
        found += [each for each in vars(module).values() if isinstance(each, Conversation)]
    return tuple(found)


def _versions(vary: type | None, since: int, until: int) -> tuple[int | None, ...]:
    if vary is None:
        return (None,)
    api_key = schema_of(vary).api_key
    assert api_key is not None, f"{vary.__name__} is not a request"
    return tuple(version for version in SERVED[api_key] if since <= version <= until)
