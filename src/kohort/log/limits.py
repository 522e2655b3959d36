"""Limits and constants of the log that are not topic settings."""

from typing import Final

from kohort.types import Millis, value

LEADER_EPOCH: Final = 0
"""The leader epoch of every batch: a node without replicas is the only leader of its partitions."""

READ_BYTES: Final = 1 << 20
"""Bytes per read when a whole log is scanned; protects memory."""


@value
class Limits:
    producer_id_expiration_ms: Millis = Millis(24 * 60 * 60_000)
    """How long the state of an idle producer is kept: Kafka's producer.id.expiration.ms with its
    default."""

    producers_max: int = 100_000
    """Per partition; protects memory from a client that uses a new producer id for every batch.
    The producers that are idle longest are evicted first. Kafka has no such limit."""

    decompressed_bytes_max: int = 32 * 1024 * 1024
    """Of one batch; protects memory from a small batch that becomes large. Kafka decompresses as a
    stream and has no such limit."""

    batch_records_max: int = 100_000
    """A batch is decoded as a whole when it is compacted, or searched for a timestamp. Protects
    other requests, which wait meanwhile. Kafka has no such limit."""

    open_files_max: int | None = None
    """Segment files with a descriptor; protects the process's file descriptors. The least recently
    used ones are closed. None: half of the descriptors of the process."""

    compaction_keys_max: int = 500_000
    """Keys that one compaction round holds in memory, about 150 bytes each: 75 MB. A log with more
    dirty keys takes several rounds. Kafka's buffer of 128 MB holds about five million keys."""
