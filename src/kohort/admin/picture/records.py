"""Folds the records of `__consumer_offsets` into the books of groups. Pure.

Groups of the classic protocol are one record each; those of KIP-848 are many, and are put together
here from the ones that say who is a member and what it holds.
"""

from collections.abc import Callable, Mapping
from sys import intern
from typing import Any, Final

from kohort.admin.picture.book import Book, Commit
from kohort.admin.picture.generations import difference, members_of, modern_member, named_partitions
from kohort.admin.picture.values import Member, Rebalance
from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, GroupId, MemberId, Millis, Topic, Uuid
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

_CONSUMERS: Final = ("consumer", "")
"""Protocol types of groups of consumers; one that never had members has none."""


class Modern:
    """What was told of the members of a KIP-848 group."""

    __slots__ = ("current", "epoch", "members", "target")

    def __init__(self) -> None:
        self.epoch: Generation | None = None
        self.members: dict[MemberId, ConsumerGroupMemberMetadataValue] = {}
        self.current: dict[MemberId, ConsumerGroupCurrentMemberAssignmentValue] = {}
        self.target: dict[MemberId, ConsumerGroupTargetAssignmentMemberValue] = {}


class Ledger:
    """Books of groups, as records change them."""

    def __init__(
        self,
        books: Mapping[GroupId, Book],
        book: Callable[[GroupId], Book],
        note_rebalance: Callable[[Book, Rebalance], None],
        touch: Callable[[Book], None],
    ) -> None:
        self._books = books
        self._book = book
        self._note_rebalance = note_rebalance
        self._touch = touch
        self._modern: dict[GroupId, Modern] = {}
        self._targets: dict[GroupId, tuple[Member, ...]] = {}
        self._names: Mapping[Uuid, Topic] = {}

    def learn_names(self, names: Mapping[Uuid, Topic]) -> None:
        """Groups of KIP-848 know topics by their ids."""
        if names != self._names:
            self._names = names
            for group_id, modern in self._modern.items():
                self._show(group_id, modern)

    def forget(self, group_id: GroupId) -> None:
        self._modern.pop(group_id, None)
        self._targets.pop(group_id, None)

    def fold(self, key_bytes: bytes | None, value_bytes: bytes | None, at_ms: Millis) -> bool:
        """Whether the record makes sense; kinds that are not known here are left alone."""
        try:
            key = decode_key(key_bytes or b"")
            told = decode_value(key, value_bytes)
        except UnsupportedVersion:
            return True
        except WireError:
            return False
        folder = _FOLDERS.get(type(key))
        if folder is not None:
            folder(self, key, told, at_ms)
        return True

    def fold_commit(self, key: OffsetCommitKey, told: OffsetCommitValue | None, _: Millis) -> None:
        if told is None and key.group not in self._books:
            return
        book = self._book(key.group)
        partition = TopicPartition(Topic(intern(key.topic)), key.partition)
        commit = book.commits.get(partition)
        if told is None:
            book.commits.pop(partition, None)
        elif commit is None:
            book.commits[partition] = Commit(told.offset, told.commit_timestamp, told.metadata)
        else:
            commit.renew(told.offset, told.commit_timestamp, told.metadata)
        self._touch(book)

    def fold_group(
        self, key: GroupMetadataKey, told: GroupMetadataValue | None, at_ms: Millis
    ) -> None:
        if told is None:
            # The group is gone, or became one of KIP-848: the answer about all groups tells which.
            return
        if told.protocol_type not in _CONSUMERS:
            return
        book = self._book(key.group)
        before, known = book.members, book.generation
        after = members_of(told)
        book.kind, book.protocol_type = "classic", told.protocol_type
        book.protocol, book.leader = told.protocol or "", told.leader
        book.generation, book.members = told.generation, after
        if told.generation != known:
            book.formed_ms = at_ms
            # A rebalance that is being told by events is told to its end by them.
            if book.under_way is None and (after or before):
                self._note_rebalance(
                    book,
                    difference(
                        generation_before=known,
                        before=None if known is None else before,
                        generation=told.generation,
                        after=after,
                        at_ms=at_ms,
                        protocol=book.protocol,
                        leader=told.leader,
                    ),
                )
        if not book.state:
            book.state = "Stable" if after else "Empty"
        self._touch(book)

    # KIP-848

    def fold_member(
        self,
        key: ConsumerGroupMemberMetadataKey,
        told: ConsumerGroupMemberMetadataValue | None,
        _: Millis,
    ) -> None:
        modern = self._modern.setdefault(key.group_id, Modern())
        _keep(modern.members, key.member_id, told)
        self._show(key.group_id, modern)

    def fold_current(
        self,
        key: ConsumerGroupCurrentMemberAssignmentKey,
        told: ConsumerGroupCurrentMemberAssignmentValue | None,
        _: Millis,
    ) -> None:
        modern = self._modern.setdefault(key.group_id, Modern())
        _keep(modern.current, key.member_id, told)
        self._show(key.group_id, modern)

    def fold_target(
        self,
        key: ConsumerGroupTargetAssignmentMemberKey,
        told: ConsumerGroupTargetAssignmentMemberValue | None,
        _: Millis,
    ) -> None:
        modern = self._modern.setdefault(key.group_id, Modern())
        _keep(modern.target, key.member_id, told)

    def fold_epoch(
        self,
        key: ConsumerGroupTargetAssignmentMetadataKey,
        told: ConsumerGroupTargetAssignmentMetadataValue | None,
        at_ms: Millis,
    ) -> None:
        """The last record of a new target assignment: the members have been told before it."""
        if told is None:
            return
        modern = self._modern.setdefault(key.group_id, Modern())
        book = self._book(key.group_id)
        generation = Generation(told.assignment_epoch)
        known, before = modern.epoch, self._targets.get(key.group_id)
        after = self._assigned(modern)
        modern.epoch = book.generation = generation
        book.formed_ms = at_ms
        self._targets[key.group_id] = after
        self._show(key.group_id, modern)
        if generation != known and (after or before):
            self._note_rebalance(
                book,
                difference(
                    generation_before=known,
                    before=None if known is None else before,
                    generation=generation,
                    after=after,
                    at_ms=at_ms,
                    protocol=book.protocol,
                    leader=None,
                ),
            )

    def _assigned(self, modern: Modern) -> tuple[Member, ...]:
        """Everyone, with what they are meant to hold."""
        members = []
        for member_id, told in sorted(modern.members.items()):
            target = modern.target.get(member_id)
            pairs = () if target is None else target.topic_partitions
            member = modern_member(member_id, told, None, self._names)
            members.append(
                Member(
                    party=member.party,
                    is_leader=False,
                    session_timeout_ms=member.session_timeout_ms,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                    topics=member.topics,
                    holds=named_partitions(
                        ((each.topic_id, each.partitions) for each in pairs), self._names
                    ),
                )
            )
        return tuple(members)

    def _show(self, group_id: GroupId, modern: Modern) -> None:
        """Everyone, with what they hold."""
        book = self._book(group_id)
        book.kind, book.protocol_type, book.leader = "consumer", "consumer", None
        assignors = {each.server_assignor for each in modern.members.values()} - {None, ""}
        book.protocol = str(assignors.pop()) if len(assignors) == 1 else ""
        book.members = tuple(
            modern_member(member_id, told, modern.current.get(member_id), self._names)
            for member_id, told in sorted(modern.members.items())
        )
        self._touch(book)


def _keep(kept: dict[MemberId, Any], member_id: MemberId, told: Any) -> None:
    if told is None:
        kept.pop(member_id, None)
    else:
        kept[member_id] = told


_FOLDERS: Final[Mapping[type, Callable[[Ledger, Any, Any, Millis], None]]] = {
    OffsetCommitKey: Ledger.fold_commit,
    GroupMetadataKey: Ledger.fold_group,
    ConsumerGroupMemberMetadataKey: Ledger.fold_member,
    ConsumerGroupCurrentMemberAssignmentKey: Ledger.fold_current,
    ConsumerGroupTargetAssignmentMemberKey: Ledger.fold_target,
    ConsumerGroupTargetAssignmentMetadataKey: Ledger.fold_epoch,
}
