"""Reads the target back and compares record counts and checksums with the source."""

from collections.abc import Iterable

from kohort.admin.migration.cluster_reader import ClusterReader
from kohort.admin.migration.migration_state import MigrationState
from kohort.admin.migration.migration_types import (
    MigrationPhase,
    MigrationProgress,
    OnProgress,
    VerificationFailed,
)
from kohort.admin.migration.rebatch import checksum, read_batch
from kohort.types import ProducerId, TopicPartition, value
from kohort.wire.batch_header import split, verify_crc


@value
class PartitionMismatch:
    partition: TopicPartition
    expected: tuple[int, int]
    """Record count and checksum of the source."""
    found: tuple[int, int]

    def __str__(self) -> str:
        (expected, expected_sum), (found, found_sum) = self.expected, self.found
        name = f"{self.partition.topic}:{self.partition.partition}"
        return (
            f"{name} has {found} records with checksum {found_sum:08x}, expected "
            f"{expected} with {expected_sum:08x}"
        )


def verify(
    reader: ClusterReader,
    state: MigrationState,
    producer_id: ProducerId,
    partitions: Iterable[TopicPartition],
    on_progress: OnProgress,
) -> None:
    """Verify all copied records that were not verified yet. Raises VerificationFailed."""
    checkpoints = {each: state.get_partition(each) for each in partitions}
    checkpoints = {
        each: checkpoint
        for each, checkpoint in checkpoints.items()
        if checkpoint.copied > checkpoint.verified
    }
    found = {
        each: (checkpoint.verified, checkpoint.verified_checksum)
        for each, checkpoint in checkpoints.items()
    }
    total = sum(checkpoint.copied - checkpoint.verified for checkpoint in checkpoints.values())
    starts = {each: checkpoint.verified_next for each, checkpoint in checkpoints.items()}
    ends = {each: checkpoint.target_next for each, checkpoint in checkpoints.items()}
    verified = size = 0
    for fetched in reader.read(starts, ends):
        partition, so_far = fetched.partition, found[fetched.partition]
        for pos, header in split(fetched.content, truncated_ok=True):
            is_copied = header.producer_id == producer_id and not header.is_control
            if is_copied and header.base_offset < ends[partition]:
                verify_crc(fetched.content, pos, header)
                records = [
                    record
                    for record in read_batch(fetched.content, pos, header, partition)
                    if record.offset >= fetched.first
                ]
                so_far = so_far[0] + len(records), checksum(records, so_far[1])
                verified, size = verified + len(records), size + header.size_in_bytes
        found[partition] = so_far
        on_progress(_progress(verified, total, size))
    differences = [
        PartitionMismatch(
            partition=each, expected=(checkpoint.copied, checkpoint.checksum), found=found[each]
        )
        for each, checkpoint in sorted(checkpoints.items())
        if found[each] != (checkpoint.copied, checkpoint.checksum)
    ]
    if differences:
        raise VerificationFailed(
            "the target differs from the source: " + "; ".join(map(str, differences))
        )
    for partition in checkpoints:
        state.mark_verified(partition)


def _progress(done: int, total: int, size: int) -> MigrationProgress:
    return MigrationProgress(
        phase=MigrationPhase.VERIFYING, done=done, total=total, records=done, data_bytes=size
    )
