"""Every bound of the log that is not a topic's setting, with what each protects."""

from typing import Final

from kohort.types import Millis, value

LEADER_EPOCH: Final = 0
"""What every batch says of its leader: a node alone is its partitions' first and only one."""

READ_BYTES: Final = 1 << 20
"""How much is read at once where a whole log is walked; protects memory."""


@value
class Limits:
    producer_id_expiration_ms: Millis = Millis(24 * 60 * 60_000)
    """How long an idle producer is remembered. Kafka's producer.id.expiration.ms, and its day."""

    producers_max: int = 100_000
    """Per partition; protects memory from a client that takes a new id for every batch. Those
    idle longest are forgotten first. Kafka has no such limit."""

    open_segments_max: int = 4
    """Per partition, beside the active one; protects the process's file descriptors."""

    compaction_keys_max: int = 500_000
    """Keys one round of compaction holds in memory, about 150 bytes each: 75 MB. A dirtier log
    takes more rounds. Kafka's buffer of 128 MB holds some five million."""
