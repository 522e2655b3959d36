"""Commits the groups' offsets in the target: each source offset becomes that of the same record.

Offsets that a group has committed in the target itself are not overwritten. A group with members
in the target cannot be moved.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kohort.admin import offsets as offset_admin
from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import AdminError, GroupNotEmpty
from kohort.admin.migration.cluster_reader import ClusterReader
from kohort.admin.migration.migration_state import MigrationState
from kohort.admin.migration.migration_types import (
    MigrationPhase,
    MigrationProgress,
    MovedGroup,
    MovedOffset,
    OnProgress,
    VerificationFailed,
)
from kohort.admin.offsets import CommittedOffset
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.types import GroupId, Offset, TopicPartition

Commits = Mapping[GroupId, Mapping[TopicPartition, CommittedOffset]]


class OffsetMover:
    def __init__(
        self,
        *,
        target: Cluster,
        state: MigrationState,
        source_reader: ClusterReader,
        target_reader: ClusterReader,
        is_replacing: bool,
        on_progress: OnProgress,
    ) -> None:
        self._target = target
        self._state = state
        self._source_reader = source_reader
        self._target_reader = target_reader
        self._is_replacing = is_replacing
        self._on_progress = on_progress
        self.warnings: list[str] = []
        self.failures: list[str] = []
        self._compared: dict[tuple[TopicPartition, Offset], bool] = {}

    def move(
        self, commits: Commits, partitions: Iterable[TopicPartition]
    ) -> tuple[MovedGroup, ...]:
        """Translate, commit and verify the offsets of these partitions."""
        copied = frozenset(partitions)
        target_offsets = offset_admin.list_group_offsets(self._target, commits)
        source_ends = self._source_reader.ends(copied)
        target_ends = self._target_reader.ends(copied)
        moved: list[MovedGroup] = []
        for number, (group_id, committed_offsets) in enumerate(sorted(commits.items())):
            self._report(number, len(commits))
            wanted = {
                each: committed
                for each, committed in sorted(committed_offsets.items())
                if each in copied
            }
            if not wanted:
                continue
            translated = {
                each: self._state.translate(each, committed.offset)
                for each, committed in wanted.items()
            }
            translated = self._without_own_commits(
                group_id, translated, target_offsets.get(group_id, {})
            )
            if not self._commit(group_id, translated, wanted):
                continue
            compared = sum(
                self._points_to_same_record(
                    each, wanted[each].offset, target, source_ends[each], target_ends[each]
                )
                for each, target in translated.items()
            )
            moved.append(
                MovedGroup(
                    group_id=group_id,
                    offsets=tuple(
                        MovedOffset(partition=each, source=wanted[each].offset, target=target)
                        for each, target in translated.items()
                    ),
                    compared=compared,
                )
            )
        if commits:
            self._report(len(commits), len(commits))
        return tuple(moved)

    def _without_own_commits(
        self,
        group_id: GroupId,
        translated: Mapping[TopicPartition, Offset],
        existing: Mapping[TopicPartition, CommittedOffset],
    ) -> dict[TopicPartition, Offset]:
        """Drop the partitions in which the group has committed in the target itself."""
        moved = self._state.moved_offsets(group_id)
        remaining: dict[TopicPartition, Offset] = {}
        skipped: list[str] = []
        for each, target in translated.items():
            known = existing.get(each)
            is_own_commit = known is not None and known.offset not in (moved.get(each), target)
            if is_own_commit and not self._is_replacing:
                skipped.append(f"{each.topic}:{each.partition}")
            else:
                remaining[each] = target
        if skipped:
            self.warnings.append(
                f"group {group_id!r} has committed in the target itself; not overwritten: "
                + ", ".join(skipped)
            )
        return remaining

    def _commit(
        self,
        group_id: GroupId,
        offsets: Mapping[TopicPartition, Offset],
        commits: Mapping[TopicPartition, CommittedOffset],
    ) -> bool:
        if not offsets:
            return False
        metadata = {each: commits[each].metadata for each in offsets}
        try:
            offset_admin.alter_offsets(self._target, group_id, offsets, metadata=metadata)
        except GroupNotEmpty:
            self.failures.append(
                f"group {group_id!r} has members in the target; stop them to set its offsets"
            )
            return False
        except AdminError as error:
            self.failures.append(str(error))
            return False
        self._state.save_moved_offsets(group_id, offsets)
        return True

    def _points_to_same_record(
        self,
        partition: TopicPartition,
        source: Offset,
        target: Offset,
        source_end: Offset,
        target_end: Offset,
    ) -> bool:
        """Whether the offset points to a record. Raises VerificationFailed if they differ."""
        key = partition, source
        if key not in self._compared:
            source_record = self._source_reader.read_first(partition, source, source_end)
            self._compared[key] = source_record is not None and self._is_copied(
                partition, source_record
            )
            if source_record is not None and self._compared[key]:
                # If retention has deleted records of the source, compare the next one that is left.
                offset = max(target, self._state.translate(partition, source_record.offset))
                target_record = self._target_reader.read_first(partition, offset, target_end)
                if target_record is None or _content(target_record) != _content(source_record):
                    name = f"{partition.topic}:{partition.partition}"
                    raise VerificationFailed(
                        f"offset {source} of {name} became {target} in the target, where the "
                        "record is different"
                    )
        return self._compared[key]

    def _is_copied(self, partition: TopicPartition, record: ConsumerRecord) -> bool:
        """The source may have newer records than the copy."""
        return record.offset < self._state.get_partition(partition).source_next

    def _report(self, done: int, total: int) -> None:
        self._on_progress(
            MigrationProgress(
                phase=MigrationPhase.MOVING, done=done, total=total, records=0, data_bytes=0
            )
        )


def _content(record: ConsumerRecord) -> tuple[Any, ...]:
    return record.key, record.value, record.headers, record.timestamp
