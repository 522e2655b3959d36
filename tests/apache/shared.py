"""The one Apache Kafka broker that all tests of a run share.

`make test` starts it and passes its address to every pytest process. A pytest process that is
started alone starts its own. Tests use unique topic and group names, so they do not interfere.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.apache.cluster import Kafka

ADDRESS = "KOHORT_TEST_KAFKA"
"""Environment variable: the bootstrap servers of the running broker."""

SETTINGS = {"offsets.retention.check.interval.ms": 200}
"""In addition to the settings of every Apache Kafka that tests start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedKafka:
    bootstrap_servers: str


@contextmanager
def shared_kafka(directory: Path) -> Iterator[SharedKafka]:
    """Use the running broker, or start one in this directory. Raises Unavailable."""
    if address := os.environ.get(ADDRESS):
        yield SharedKafka(bootstrap_servers=address)
        return
    with Kafka(directory, SETTINGS) as kafka:
        yield SharedKafka(bootstrap_servers=kafka.bootstrap_servers)
