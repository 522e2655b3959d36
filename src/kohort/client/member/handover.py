"""Giving up partitions: what was done with them is committed first, then the listener hears of it.

A member that commits by itself asks for positions while the program is in poll, so that they cover
all it was given; from then on nothing of these partitions is handed out.
"""

from enum import Enum, auto

from kohort.client.member.committing import Commits, Occasion, Positions
from kohort.client.member.effects import Change, TellPositions
from kohort.client.member.outbox import Outbox
from kohort.client.member.program import Program
from kohort.client.member.settings import MemberSettings
from kohort.client.topic_partition import TopicPartition
from kohort.types import Millis


class _Stage(Enum):
    BEFORE = auto()
    TELLING = auto()
    """The program is asked how far it has come."""
    COMMITTING = auto()
    DONE = auto()


class Handover:
    def __init__(
        self, settings: MemberSettings, outbox: Outbox, program: Program, commits: Commits
    ) -> None:
        self._settings = settings
        self._outbox = outbox
        self._program = program
        self._commits = commits
        self._partitions: frozenset[TopicPartition] | None = None
        self._stage = _Stage.BEFORE
        self._ends_at = Millis(0)

    def commit(self, partitions: frozenset[TopicPartition], now: Millis) -> bool:
        """Whether all is committed that can be; as far as possible it is brought about now."""
        if not self._settings.enable_auto_commit:
            return True
        if self._partitions != partitions:
            self._partitions, self._stage = partitions, _Stage.BEFORE
        if self._stage is _Stage.BEFORE and self._program.is_ready(now):
            self._stage = _Stage.TELLING
            self._ends_at = Millis(now + self._settings.max_poll_interval_ms)
            self._outbox.say(TellPositions(leaving=partitions))
        if self._stage is _Stage.COMMITTING and not self._commits.has(Occasion.LAST):
            self._stage = _Stage.DONE
        return self._stage is _Stage.DONE

    def give_up(self, change: Change, partitions: frozenset[TopicPartition], now: Millis) -> None:
        """Tell the listener, as soon as it can hear."""
        if self._program.is_ready(now):
            self._partitions = None
            self._program.tell(change, partitions, now)

    def cancel(self) -> None:
        """What was about to go stays, or goes in another way."""
        self._partitions = None

    def take(self, positions: Positions) -> bool:
        """Whether these positions are the ones that were asked for."""
        if self._stage is not _Stage.TELLING or self._partitions is None:
            return False
        self._stage = _Stage.COMMITTING
        self._commits.keep(Occasion.LAST, positions, self._ends_at)
        return True
