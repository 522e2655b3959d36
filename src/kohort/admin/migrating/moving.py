"""Moves what groups have committed: from an offset of A to the offset of the same record in B.

A group that has gone on in B is left where it is. A group with members in B cannot be moved.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from kohort.admin import offsets as offset_admin
from kohort.admin.cluster import Cluster
from kohort.admin.errors import AdminError, GroupNotEmpty
from kohort.admin.migrating.reading import Reader
from kohort.admin.migrating.state import State
from kohort.admin.migrating.wish import MovedGroup, MovedOffset, NotTheSame, Phase, Progress, Watch
from kohort.admin.offsets import Committed
from kohort.client.fetching.records import ConsumerRecord
from kohort.client.topic_partition import TopicPartition
from kohort.types import GroupId, Offset

Commits = Mapping[GroupId, Mapping[TopicPartition, Committed]]


class Moving:
    def __init__(
        self,
        *,
        target: Cluster,
        state: State,
        a: Reader,
        b: Reader,
        is_replacing: bool,
        watch: Watch,
    ) -> None:
        self._target = target
        self._state = state
        self._a = a
        self._b = b
        self._is_replacing = is_replacing
        self._watch = watch
        self.warnings: list[str] = []
        self.failures: list[str] = []
        self._compared: dict[tuple[TopicPartition, Offset], bool] = {}

    def move(
        self, commits: Commits, partitions: Iterable[TopicPartition]
    ) -> tuple[MovedGroup, ...]:
        """Commit in B what was committed in A, of these partitions, and compare."""
        copied = frozenset(partitions)
        in_b = offset_admin.committed(self._target, commits)
        ends_a, ends_b = self._a.ends(copied), self._b.ends(copied)
        moved: list[MovedGroup] = []
        for number, (group_id, told) in enumerate(sorted(commits.items())):
            self._tell(number, len(commits))
            wanted = {each: committed for each, committed in sorted(told.items()) if each in copied}
            if not wanted:
                continue
            translated = {
                each: self._state.translate(each, committed.offset)
                for each, committed in wanted.items()
            }
            translated = self._leave(group_id, translated, in_b.get(group_id, {}))
            if not self._commit(group_id, translated, wanted):
                continue
            compared = sum(
                self._compare(each, wanted[each].offset, target, ends_a[each], ends_b[each])
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
            self._tell(len(commits), len(commits))
        return tuple(moved)

    def _leave(
        self,
        group_id: GroupId,
        translated: Mapping[TopicPartition, Offset],
        there: Mapping[TopicPartition, Committed],
    ) -> dict[TopicPartition, Offset]:
        """Without what the group has done in B by itself."""
        ours = self._state.moved_offsets(group_id)
        kept: dict[TopicPartition, Offset] = {}
        left: list[str] = []
        for each, target in translated.items():
            known = there.get(each)
            is_theirs = known is not None and known.offset not in (ours.get(each), target)
            if is_theirs and not self._is_replacing:
                left.append(f"{each.topic}:{each.partition}")
            else:
                kept[each] = target
        if left:
            self.warnings.append(
                f"group {group_id!r} has committed by itself in B, and is left there: "
                + ", ".join(left)
            )
        return kept

    def _commit(
        self,
        group_id: GroupId,
        offsets: Mapping[TopicPartition, Offset],
        told: Mapping[TopicPartition, Committed],
    ) -> bool:
        if not offsets:
            return False
        metadata = {each: told[each].metadata for each in offsets}
        try:
            offset_admin.alter_offsets(self._target, group_id, offsets, metadata=metadata)
        except GroupNotEmpty:
            self.failures.append(
                f"group {group_id!r} has members in B, and its offsets cannot be set meanwhile"
            )
            return False
        except AdminError as error:
            self.failures.append(str(error))
            return False
        self._state.remember_moved(group_id, offsets)
        return True

    def _compare(
        self,
        partition: TopicPartition,
        source: Offset,
        target: Offset,
        end_a: Offset,
        end_b: Offset,
    ) -> bool:
        """Whether it points to a record; NotTheSame if that is another one."""
        key = partition, source
        if key not in self._compared:
            ours = self._a.read_first(partition, source, end_a)
            self._compared[key] = ours is not None and self._is_copied(partition, ours)
            if ours is not None and self._compared[key]:
                # Where A has let go of records meanwhile, the next one that it has counts.
                place = max(target, self._state.translate(partition, ours.offset))
                theirs = self._b.read_first(partition, place, end_b)
                if theirs is None or _content(theirs) != _content(ours):
                    name = f"{partition.topic}:{partition.partition}"
                    raise NotTheSame(
                        f"offset {source} of {name} in A became {target} in B, where another "
                        "record is"
                    )
        return self._compared[key]

    def _is_copied(self, partition: TopicPartition, record: ConsumerRecord) -> bool:
        """A may have gone on since it was copied."""
        return record.offset < self._state.get_partition(partition).source_next

    def _tell(self, done: int, total: int) -> None:
        self._watch(Progress(phase=Phase.MOVING, done=done, total=total, records=0, data_bytes=0))


def _content(record: ConsumerRecord) -> tuple[Any, ...]:
    return record.key, record.value, record.headers, record.timestamp
