"""A copy of the log directory of a running Apache Kafka."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.apache.cluster import Kafka
from tests.apache.unavailable import Unavailable, skip

Seen = TypeVar("Seen")


def copy_log_after(live_through: Callable[[Kafka], Seen], place: Path) -> tuple[str, Seen]:
    """The copy, and what the clients saw."""
    try:
        kafka = Kafka(place / "kafka")
    except Unavailable as reason:
        skip(reason)
    with kafka:
        seen = live_through(kafka)
        (data,) = (place / "kafka").glob("*/data")
        shutil.copytree(data, place / "copy")
    return f"{place / 'copy'}", seen
