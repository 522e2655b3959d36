"""What a consumer says about itself, to the logger `kohort.consumer`: a word, then its facts.

It speaks seldom. Every word it knows is explained in WORDS, from which the documents are made.
"""

import json
import logging
from collections.abc import Mapping
from typing import Final

_LOGGER: Final = logging.getLogger("kohort.consumer")

WORDS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "broker-lost": (
        ("address", "reason"),
        "a broker could not be reached, hung up or made no sense; it is tried again",
    ),
    "rebalanced": (
        ("group", "member", "generation", "reason", "ending", "assigned", "added", "revoked"),
        "a rebalance of this member has ended; `assigned` counts what it holds now",
    ),
    "commit-failed": (
        ("group", "partitions", "reason"),
        "what the program has done with cannot be committed; another member will read it again",
    ),
    "offset-reset": (
        ("topic", "partition", "reason"),
        "there was no offset to go on from, so auto.offset.reset says where to begin",
    ),
    "left-unclosed": (
        ("group",),
        "a consumer was forgotten without close(); its group notices when its session ends",
    ),
}
"""Every word with its facts and its meaning."""


def note(word: str, **facts: object) -> None:
    _LOGGER.info("%s%s", word, _Facts(facts))


def warn(word: str, **facts: object) -> None:
    _LOGGER.warning("%s%s", word, _Facts(facts))


class _Facts:
    """Written out only if somebody listens."""

    def __init__(self, facts: dict[str, object]) -> None:
        self._facts = facts

    def __str__(self) -> str:
        return "".join(f" {name}={_show(fact)}" for name, fact in self._facts.items())


def _show(fact: object) -> str:
    text = str(fact)
    return json.dumps(text) if not text or any(c in text for c in ' "\n\r\t=') else text
