"""What the node says about itself: an event's name first, then its facts as name=value.

Every word it knows is explained in WORDS, from which the documents are made.
"""

import json
import logging
from collections.abc import Mapping
from typing import Final

_LOGGER: Final = logging.getLogger("kohort")

WORDS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "tail-cut": (
        ("path", "position", "bytes", "reason"),
        "a log did not end where it should, as after a crash: what was no whole batch is cut off",
    ),
    "groups-loaded": (
        ("groups",),
        "`__consumer_offsets` is read, so many groups are known; from here on they are answered",
    ),
    "record-skipped": (
        ("reason",),
        "a record of `__consumer_offsets` is damaged, or of a kind of group not known here",
    ),
    "metrics-served": (("address",), "the figures can be read there"),
    "connection-refused": (("peer", "reason"), "there are as many connections as there may be"),
    "cannot-accept": (
        ("reason",),
        "the system lets no other connection in, mostly for want of room; tried again in a second",
    ),
    "connection-closed": (
        ("peer", "reason"),
        "the node hung up on a client: it was idle, or what it sent made no sense",
    ),
    "events-lost": (
        ("count", "reason"),
        "so many events could not be written to `__kohort_events`; their groups go on",
    ),
    "checkpoint-failed": (
        ("reason",),
        "how far the log is clean and safe could not be written; it will be another time",
    ),
    "disk-failed": (
        ("reason",),
        "the disk failed: nothing can be promised any more, and the node stops",
    ),
}
"""Every event with its facts and its meaning, in the order in which they are likely to be met."""


def say(event: str, **facts: object) -> None:
    _LOGGER.info("%s%s", event, _Facts(facts))


def warn(event: str, **facts: object) -> None:
    _LOGGER.warning("%s%s", event, _Facts(facts))


class _Facts:
    """Written out only if somebody listens."""

    def __init__(self, facts: dict[str, object]) -> None:
        self._facts = facts

    def __str__(self) -> str:
        return "".join(f" {name}={_show(fact)}" for name, fact in self._facts.items())


def _show(fact: object) -> str:
    text = str(fact)
    return json.dumps(text) if not text or any(c in text for c in ' "\n\r\t=') else text
