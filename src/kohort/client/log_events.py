"""Log messages of the consumer, to the logger `kohort.consumer`: an event name, then its fields.

EVENTS lists all of them; docs/reference/consumer.md is generated from it.
"""

import json
import logging
from collections.abc import Mapping
from typing import Final

_LOGGER: Final = logging.getLogger("kohort.consumer")

EVENTS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "broker-lost": (
        ("address", "reason"),
        "a broker could not be reached, disconnected or sent an invalid response; it is retried",
    ),
    "rebalanced": (
        ("group", "member", "generation", "reason", "result", "assigned", "added", "revoked"),
        "a rebalance of this member has ended; `assigned` is the number of partitions it owns",
    ),
    "commit-failed": (
        ("group", "partitions", "reason"),
        "an automatic commit failed; another member will read these records again",
    ),
    "offset-reset": (
        ("topic", "partition", "reason"),
        "there was no valid offset, so auto.offset.reset was applied",
    ),
    "not-closed": (
        ("group",),
        "a consumer was not closed; its group rebalances when its session times out",
    ),
}
"""Every event name with its fields and its meaning."""


def info(name: str, **fields: object) -> None:
    _LOGGER.info("%s%s", name, _Fields(fields))


def warn(name: str, **fields: object) -> None:
    _LOGGER.warning("%s%s", name, _Fields(fields))


class _Fields:
    """Formatted only if the message is logged."""

    def __init__(self, fields: dict[str, object]) -> None:
        self._fields = fields

    def __str__(self) -> str:
        return "".join(f" {name}={_quote(field)}" for name, field in self._fields.items())


def _quote(field: object) -> str:
    text = str(field)
    return json.dumps(text) if not text or any(c in text for c in ' "\n\r\t=') else text
