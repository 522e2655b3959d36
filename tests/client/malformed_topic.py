"""A topic with batches that cannot be decoded, as old logs and other brokers may contain them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import kohort
from kohort.types import Topic
from tests.client.node_cluster import SETTINGS, Cluster
from tests.log.log_setup import numbered_batch
from tests.log.malformed_batches import MALFORMED, append_below_validation, damage_last_batch

READABLE = [0, 12]
"""The offsets of records that can be read."""

END = 13


@contextmanager
def malformed_topic(data: Path) -> Iterator[tuple[Cluster, Topic]]:
    """One record, three malformed batches of three offsets, a batch of two records with a wrong
    checksum, and one more record."""
    with kohort.Node(data=data, settings=SETTINGS) as node:
        cluster = Cluster(bootstrap_servers=node.bootstrap_servers)
        topic = cluster.create_topic()
        cluster.produce(topic, 1)
    append_below_validation(data, topic, *(make() for make in MALFORMED.values()))
    append_below_validation(data, topic, numbered_batch(0, 2))
    damage_last_batch(data / f"{topic}-0")
    append_below_validation(data, topic, numbered_batch(1))
    with kohort.Node(data=data, settings=SETTINGS) as node:
        yield Cluster(bootstrap_servers=node.bootstrap_servers), topic
