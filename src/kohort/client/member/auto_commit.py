"""The auto-commit timer: when to request processed positions from the application."""

from kohort.client.member.effects import RequestPositions
from kohort.client.member.member_settings import MemberSettings
from kohort.client.member.membership import Membership, MemberState
from kohort.client.member.offset_commit import CommitTrigger, OffsetCommits, OffsetsByPartition
from kohort.client.member.outbox import Outbox
from kohort.types import Millis


class AutoCommit:
    def __init__(
        self,
        settings: MemberSettings,
        outbox: Outbox,
        membership: Membership,
        commits: OffsetCommits,
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._membership = membership
        self._commits = commits
        self._next_at: Millis | None = None

    def start(self, now: Millis) -> None:
        """Start the timer unless it runs already."""
        if self._next_at is None:
            self.restart(now)

    def restart(self, now: Millis) -> None:
        if self._settings.enable_auto_commit:
            self._next_at = Millis(now + self._settings.auto_commit_interval_ms)

    def advance(self, now: Millis) -> None:
        due = self.due()
        if due is not None and now >= due:
            self.restart(now)
            if not self._commits.has(CommitTrigger.PERIODIC):
                self._outbox.add(RequestPositions())

    def take_positions(self, positions: OffsetsByPartition, now: Millis) -> None:
        deadline = Millis(now + self._settings.auto_commit_interval_ms)
        self._commits.commit_automatically(CommitTrigger.PERIODIC, positions, deadline)

    def due(self) -> Millis | None:
        """None while no commit is possible. A member that leaves commits separately."""
        is_leaving = self._membership.state in (MemberState.LEAVING, MemberState.ENDED)
        return None if is_leaving or not self._commits.is_possible else self._next_at
