"""Without faults, all members become stable and all records are committed."""

from collections.abc import Iterator

from kohort.sim.checkers.commit_durability import CommitDurability
from kohort.sim.checkers.deliveries import Deliveries
from kohort.sim.checkers.record_durability import RecordDurability
from kohort.types import TopicPartition


def find_lags(
    commits: CommitDurability,
    records: RecordDurability,
    deliveries: Deliveries,
    wanted: dict[str, list[TopicPartition]],
) -> Iterator[str]:
    """Partitions with acknowledged records that a group has not committed."""
    for group, partitions in wanted.items():
        for partition in partitions:
            end, committed = records.end(partition), commits.find(group, partition)
            where = f"{group}/{partition.topic}-{partition.partition}"
            if commits.may_have_regressed(group, partition):
                # Members do not commit an offset again that they know to be committed.
                left = deliveries.find_unprocessed(group, partition)
                if left is not None:
                    yield f"{where} at {left} of {end}"
            elif committed < end and end:
                yield f"{where} at {committed} of {end}"
