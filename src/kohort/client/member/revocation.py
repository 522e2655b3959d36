"""Revoking partitions: commit what is processed, then call the listener.

With auto-commit, positions are requested while the application is in poll, so that they cover every
record it was given. From then on no record of these partitions is returned.
"""

from enum import Enum, auto

from kohort.client.member.effects import AssignmentChange, RequestPositions
from kohort.client.member.member_settings import MemberSettings
from kohort.client.member.offset_commit import CommitTrigger, OffsetCommits, OffsetsByPartition
from kohort.client.member.outbox import Outbox
from kohort.client.member.poll_tracker import PollTracker
from kohort.types import Millis, TopicPartition


class _RevocationStep(Enum):
    NOT_STARTED = auto()
    AWAITING_POSITIONS = auto()
    COMMITTING = auto()
    DONE = auto()


class Revocation:
    def __init__(
        self,
        settings: MemberSettings,
        outbox: Outbox,
        poll_tracker: PollTracker,
        commits: OffsetCommits,
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._poll_tracker = poll_tracker
        self._commits = commits
        self._partitions: frozenset[TopicPartition] | None = None
        self._step = _RevocationStep.NOT_STARTED
        self._deadline = Millis(0)

    def commit(self, partitions: frozenset[TopicPartition], now: Millis) -> bool:
        """Start or continue the commit; whether it is finished, successful or not."""
        if not self._settings.enable_auto_commit:
            return True
        if self._partitions != partitions:
            self._partitions, self._step = partitions, _RevocationStep.NOT_STARTED
        is_new = self._step is _RevocationStep.NOT_STARTED
        if is_new and self._poll_tracker.can_call_listener(now):
            self._step = _RevocationStep.AWAITING_POSITIONS
            self._deadline = Millis(now + self._settings.max_poll_interval_ms)
            self._outbox.add(RequestPositions(revoking=partitions))
        is_committing = self._step is _RevocationStep.COMMITTING
        if is_committing and not self._commits.has(CommitTrigger.BEFORE_REVOKE):
            self._step = _RevocationStep.DONE
        return self._step is _RevocationStep.DONE

    def call_listener(
        self, change: AssignmentChange, partitions: frozenset[TopicPartition], now: Millis
    ) -> None:
        """Call the listener as soon as the application is in poll."""
        if self._poll_tracker.can_call_listener(now):
            self._partitions = None
            self._poll_tracker.call_listener(change, partitions, now)

    def cancel(self) -> None:
        """The partitions stay, or are lost instead."""
        self._partitions = None

    def take_positions(self, positions: OffsetsByPartition) -> bool:
        """Commit these if they were requested here; whether they were."""
        if self._step is not _RevocationStep.AWAITING_POSITIONS or self._partitions is None:
            return False
        self._step = _RevocationStep.COMMITTING
        self._commits.commit_automatically(CommitTrigger.BEFORE_REVOKE, positions, self._deadline)
        return True
