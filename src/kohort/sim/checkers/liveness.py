"""Once nothing goes wrong any more, everyone settles: all members stable, all records committed."""

from collections.abc import Iterator

from kohort.client.topic_partition import TopicPartition
from kohort.sim.checkers.commits import Commits
from kohort.sim.checkers.deliveries import Deliveries
from kohort.sim.checkers.records import Records


def find_lags(
    commits: Commits,
    records: Records,
    deliveries: Deliveries,
    wanted: dict[str, list[TopicPartition]],
) -> Iterator[str]:
    """Partitions that a group reads and has not done with, as far as records were promised."""
    for group, partitions in wanted.items():
        for partition in partitions:
            end, committed = records.end(partition), commits.find(group, partition)
            where = f"{group}/{partition.topic}-{partition.partition}"
            if commits.is_unfaithful(group, partition):
                # Nobody commits again what it knows to be committed.
                left = deliveries.find_unprocessed(group, partition)
                if left is not None:
                    yield f"{where} at {left} of {end}"
            elif committed < end and end:
                yield f"{where} at {committed} of {end}"
