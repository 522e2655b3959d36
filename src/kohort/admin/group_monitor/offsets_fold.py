"""Folds the records of `__consumer_offsets` into `MonitoredGroup`. Pure.

A classic group is one record. A KIP-848 group is many records; those about members and their
assignments are combined here.
"""

from collections.abc import Callable, Mapping
from sys import intern
from typing import Any, Final

from kohort.admin.group_monitor.generation_diff import generation_diff
from kohort.admin.group_monitor.member_decoder import (
    classic_members,
    consumer_group_member,
    named_partitions,
)
from kohort.admin.group_monitor.monitored_group import MonitoredGroup, PartitionCommit
from kohort.admin.group_monitor.views import MonitoredMember, ObservedRebalance
from kohort.types import Generation, GroupId, MemberId, Millis, Topic, TopicPartition, Uuid
from kohort.wire.consumer_offsets import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
)
from kohort.wire.errors import UnsupportedVersion, WireError

_CONSUMER_PROTOCOLS: Final = ("consumer", "")
"""Protocol types of consumer groups. It is empty if the group never had members."""


class ConsumerGroupRecords:
    """The records of a KIP-848 group, by member."""

    __slots__ = ("current", "epoch", "members", "target")

    def __init__(self) -> None:
        self.epoch: Generation | None = None
        self.members: dict[MemberId, ConsumerGroupMemberMetadataValue] = {}
        self.current: dict[MemberId, ConsumerGroupCurrentMemberAssignmentValue] = {}
        self.target: dict[MemberId, ConsumerGroupTargetAssignmentMemberValue] = {}


class OffsetsFold:
    """Updates groups as records arrive."""

    def __init__(
        self,
        groups: Mapping[GroupId, MonitoredGroup],
        get_group: Callable[[GroupId], MonitoredGroup],
        add_rebalance: Callable[[MonitoredGroup, ObservedRebalance], None],
        mark_changed: Callable[[MonitoredGroup], None],
    ) -> None:
        self._groups = groups
        self._get_group = get_group
        self._add_rebalance = add_rebalance
        self._mark_changed = mark_changed
        self._records: dict[GroupId, ConsumerGroupRecords] = {}
        self._targets: dict[GroupId, tuple[MonitoredMember, ...]] = {}
        self._names: Mapping[Uuid, Topic] = {}

    def set_topic_names(self, names: Mapping[Uuid, Topic]) -> None:
        """KIP-848 records contain topic ids."""
        if names != self._names:
            self._names = names
            for group_id, records in self._records.items():
                self._update_members(group_id, records)

    def remove(self, group_id: GroupId) -> None:
        self._records.pop(group_id, None)
        self._targets.pop(group_id, None)

    def fold(self, key_bytes: bytes | None, value_bytes: bytes | None, at_ms: Millis) -> bool:
        """False if the record cannot be decoded. Unknown record types are ignored."""
        try:
            key = decode_key(key_bytes or b"")
            value = decode_value(key, value_bytes)
        except UnsupportedVersion:
            return True
        except WireError:
            return False
        folder = _FOLDERS.get(type(key))
        if folder is not None:
            folder(self, key, value, at_ms)
        return True

    def fold_commit(self, key: OffsetCommitKey, value: OffsetCommitValue | None, _: Millis) -> None:
        if value is None and key.group not in self._groups:
            return
        group = self._get_group(key.group)
        partition = TopicPartition(Topic(intern(key.topic)), key.partition)
        commit = group.commits.get(partition)
        if value is None:
            group.commits.pop(partition, None)
        elif commit is None:
            group.commits[partition] = PartitionCommit(
                value.offset, value.commit_timestamp, value.metadata
            )
        else:
            commit.update(value.offset, value.commit_timestamp, value.metadata)
        self._mark_changed(group)

    def fold_group(
        self, key: GroupMetadataKey, value: GroupMetadataValue | None, at_ms: Millis
    ) -> None:
        if value is None:
            # The group was deleted or became a KIP-848 group; the next ListGroups response decides.
            return
        if value.protocol_type not in _CONSUMER_PROTOCOLS:
            return
        group = self._get_group(key.group)
        before, known = group.members, group.generation
        after = classic_members(value)
        group.kind, group.protocol_type = "classic", value.protocol_type
        group.protocol, group.leader = value.protocol or "", value.leader
        group.generation, group.members = value.generation, after
        if value.generation != known:
            group.formed_ms = at_ms
            # If events describe this rebalance, the next event ends it.
            if group.in_progress is None and (after or before):
                self._add_rebalance(
                    group,
                    generation_diff(
                        generation_before=known,
                        before=None if known is None else before,
                        generation=value.generation,
                        after=after,
                        at_ms=at_ms,
                        protocol=group.protocol,
                        leader=value.leader,
                    ),
                )
        if not group.state:
            group.state = "Stable" if after else "Empty"
        self._mark_changed(group)

    # KIP-848

    def fold_member(
        self,
        key: ConsumerGroupMemberMetadataKey,
        value: ConsumerGroupMemberMetadataValue | None,
        _: Millis,
    ) -> None:
        records = self._records.setdefault(key.group_id, ConsumerGroupRecords())
        _set_or_remove(records.members, key.member_id, value)
        self._update_members(key.group_id, records)

    def fold_current(
        self,
        key: ConsumerGroupCurrentMemberAssignmentKey,
        value: ConsumerGroupCurrentMemberAssignmentValue | None,
        _: Millis,
    ) -> None:
        records = self._records.setdefault(key.group_id, ConsumerGroupRecords())
        _set_or_remove(records.current, key.member_id, value)
        self._update_members(key.group_id, records)

    def fold_target(
        self,
        key: ConsumerGroupTargetAssignmentMemberKey,
        value: ConsumerGroupTargetAssignmentMemberValue | None,
        _: Millis,
    ) -> None:
        records = self._records.setdefault(key.group_id, ConsumerGroupRecords())
        _set_or_remove(records.target, key.member_id, value)

    def fold_epoch(
        self,
        key: ConsumerGroupTargetAssignmentMetadataKey,
        value: ConsumerGroupTargetAssignmentMetadataValue | None,
        at_ms: Millis,
    ) -> None:
        """The last record of a new target assignment. The members' records precede it."""
        if value is None:
            return
        records = self._records.setdefault(key.group_id, ConsumerGroupRecords())
        group = self._get_group(key.group_id)
        generation = Generation(value.assignment_epoch)
        known, before = records.epoch, self._targets.get(key.group_id)
        after = self._target_members(records)
        records.epoch = group.generation = generation
        group.formed_ms = at_ms
        self._targets[key.group_id] = after
        self._update_members(key.group_id, records)
        if generation != known and (after or before):
            self._add_rebalance(
                group,
                generation_diff(
                    generation_before=known,
                    before=None if known is None else before,
                    generation=generation,
                    after=after,
                    at_ms=at_ms,
                    protocol=group.protocol,
                    leader=None,
                ),
            )

    def _target_members(self, records: ConsumerGroupRecords) -> tuple[MonitoredMember, ...]:
        """All members with their target assignment."""
        members = []
        for member_id, value in sorted(records.members.items()):
            target = records.target.get(member_id)
            pairs = () if target is None else target.topic_partitions
            member = consumer_group_member(member_id, value, None, self._names)
            members.append(
                MonitoredMember(
                    party=member.party,
                    is_leader=False,
                    session_timeout_ms=member.session_timeout_ms,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    topics=member.topics,
                    partitions=named_partitions(
                        ((each.topic_id, each.partitions) for each in pairs), self._names
                    ),
                )
            )
        return tuple(members)

    def _update_members(self, group_id: GroupId, records: ConsumerGroupRecords) -> None:
        """Set the group's members with their current assignment."""
        group = self._get_group(group_id)
        group.kind, group.protocol_type, group.leader = "consumer", "consumer", None
        assignors = {each.server_assignor for each in records.members.values()} - {None, ""}
        group.protocol = str(assignors.pop()) if len(assignors) == 1 else ""
        group.members = tuple(
            consumer_group_member(member_id, value, records.current.get(member_id), self._names)
            for member_id, value in sorted(records.members.items())
        )
        self._mark_changed(group)


def _set_or_remove(by_member: dict[MemberId, Any], member_id: MemberId, value: Any) -> None:
    if value is None:
        by_member.pop(member_id, None)
    else:
        by_member[member_id] = value


_FOLDERS: Final[Mapping[type, Callable[[OffsetsFold, Any, Any, Millis], None]]] = {
    OffsetCommitKey: OffsetsFold.fold_commit,
    GroupMetadataKey: OffsetsFold.fold_group,
    ConsumerGroupMemberMetadataKey: OffsetsFold.fold_member,
    ConsumerGroupCurrentMemberAssignmentKey: OffsetsFold.fold_current,
    ConsumerGroupTargetAssignmentMemberKey: OffsetsFold.fold_target,
    ConsumerGroupTargetAssignmentMetadataKey: OffsetsFold.fold_epoch,
}
