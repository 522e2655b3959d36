"""What somebody wants of a forensics run. Pure: no Spark, no broker, no disk."""

import re
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import Final

from kohort.pipeline.errors import PipelineError
from kohort.types import value

GROUP: Final = "kohort-forensics"

KAFKA_REFUSED: Final = {
    "bootstrap.servers": "it has an option of its own, --bootstrap",
    "group.id": "it has an option of its own, --own-group",
    "auto.offset.reset": "a history is read from its beginning",
    "enable.auto.commit": "a group's offset is moved when a batch is kept",
}

_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")
_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


class BadForensicsWish(PipelineError, ValueError):
    """Something was asked for that cannot be."""


@value
class ForensicsWish:
    target: str
    log: str | None = None
    """A copied log directory. One of this and the next is given."""
    bootstrap_servers: str | None = None
    ends: str | None = None
    """JSON lines that say where logs ended, for a copied log: at_ms, topic, partition, log_start
    and log_end."""
    since: datetime | None = None
    groups: tuple[str, ...] = ()
    is_continuous: bool = False
    every_s: float = 10.0
    rebuild_s: float = 60.0
    """Tables are not built more often than this."""
    rows_max: int = 1_000_000
    group_id: str = GROUP
    """That of the run itself, which is left out of the tables."""
    kafka: Mapping[str, str] = field(default_factory=dict)


def check(wish: ForensicsWish) -> None:
    if (wish.log is None) == (wish.bootstrap_servers is None):
        raise BadForensicsWish("say where the history is: --bootstrap for a cluster, or --from-log")
    if wish.ends is not None and wish.log is None:
        raise BadForensicsWish("--ends is for --from-log: a cluster is asked where its logs end")
    if wish.is_continuous and wish.log is not None:
        raise BadForensicsWish("--continuous is for a cluster: a copied log does not grow")


def read_since(text: str, now: datetime) -> datetime:
    """A time, in UTC unless it says otherwise, or how long ago."""
    span = _SPAN.fullmatch(text.strip())
    if span is not None:
        return now - timedelta(seconds=float(span[1]) * _UNITS[span[2]])
    try:
        told = datetime.fromisoformat(text.strip())
    except ValueError:
        raise BadForensicsWish(
            f"{text!r} is no time: write 2026-11-16T09:00, or how long ago, such as 90m, 6h or 7d"
        ) from None
    return told if told.tzinfo is not None else told.replace(tzinfo=UTC)
