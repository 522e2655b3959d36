"""The clock of a member that commits by itself: when to ask the program how far it has come."""

from kohort.client.member.committing import Commits, Occasion, Positions
from kohort.client.member.effects import TellPositions
from kohort.client.member.membership import Membership, MemberState
from kohort.client.member.outbox import Outbox
from kohort.client.member.settings import MemberSettings
from kohort.types import Millis


class AutoCommit:
    def __init__(
        self,
        settings: MemberSettings,
        outbox: Outbox,
        membership: Membership,
        commits: Commits,
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._membership = membership
        self._commits = commits
        self._next_at: Millis | None = None

    def start(self, now: Millis) -> None:
        """Count from now, unless it counts already."""
        if self._next_at is None:
            self.restart(now)

    def restart(self, now: Millis) -> None:
        if self._settings.enable_auto_commit:
            self._next_at = Millis(now + self._settings.auto_commit_interval_ms)

    def stop(self) -> None:
        self._next_at = None

    def tick(self, now: Millis) -> None:
        due = self.due()
        if due is not None and now >= due:
            self.restart(now)
            if not self._commits.has(Occasion.PERIODIC):
                self._outbox.say(TellPositions())

    def take(self, positions: Positions, now: Millis) -> None:
        ends_at = Millis(now + self._settings.auto_commit_interval_ms)
        self._commits.keep(Occasion.PERIODIC, positions, ends_at)

    def due(self) -> Millis | None:
        """Not before it can be kept. A member that leaves sees to it at the end."""
        is_leaving = self._membership.state in (MemberState.LEAVING, MemberState.ENDED)
        return None if is_leaving or not self._commits.is_possible else self._next_at
