"""The interface of a group, whatever its type: what offsets, expiry and administration need of it.

Its error checks return None where the request is allowed.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Protocol

from kohort.coordinator.commands import CommitOffsets, CommitTransactionOffsets
from kohort.coordinator.committed_offsets import CommittedOffsets
from kohort.coordinator.outcome_builder import OutcomeBuilder
from kohort.coordinator.records import OffsetCommitted
from kohort.coordinator.replies import GroupDescription
from kohort.types import ErrorCode, GroupId, MemberId, Millis, Topic


class GroupType(StrEnum):
    """The names are the ones that ListGroups uses on the wire (KIP-848)."""

    CLASSIC = "classic"


class Group(Protocol):
    group_id: GroupId
    offsets: CommittedOffsets
    protocol_type: str | None

    @property
    def type(self) -> GroupType: ...

    @property
    def state(self) -> StrEnum: ...

    @property
    def is_empty(self) -> bool:
        """Whether the group exists and has no members."""
        ...

    @property
    def is_readable(self) -> bool:
        """Whether its offsets may be fetched; otherwise it counts as a group without offsets."""
        ...

    def is_subscribed(self, topic: Topic) -> bool: ...

    def find_commit_error(self, command: CommitOffsets) -> ErrorCode | None: ...

    def find_transactional_commit_error(
        self, command: CommitTransactionOffsets
    ) -> ErrorCode | None: ...

    def find_offset_delete_error(self) -> ErrorCode | None: ...

    def find_delete_error(self) -> ErrorCode | None: ...

    def restart_session(self, builder: OutcomeBuilder, member_id: MemberId) -> None:
        """Restart the session timeout of a member; do nothing for any other id."""
        ...

    def cancel_timers(self, builder: OutcomeBuilder) -> None:
        """Cancel the timers that an empty group may have, before it is removed."""
        ...

    def describe(self) -> GroupDescription | None:
        """Describe the group, or return None if it is dead."""
        ...

    def expirable_offsets(self) -> Iterable[OffsetCommitted]:
        """Return the offsets that expire after the retention time (KIP-211)."""
        ...

    def retention_start(self, committed: OffsetCommitted) -> Millis:
        """Return the time from which the retention of an expirable offset counts."""
        ...
