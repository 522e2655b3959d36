"""No member is removed before its time, whatever happens to the clock or to the node's process.

A member may be removed for silence only if the node ran for its session timeout after the last
heartbeat or commit of the member, and for not rejoining or syncing only if it ran for its
rebalance timeout after the rebalance, or its join phase, began. The wall clock is irrelevant, and a
time in which the process was suspended counts for half a second at most.
"""

from collections.abc import Iterable
from typing import Any, Final

from kohort.coordinator.events import Departure, GroupEvent, MemberGone, StateChanged
from kohort.coordinator.groups.classic.states import GroupState
from kohort.sim.checkers import Violation
from kohort.types import value
from kohort.virtual_time.scheduler import MS, Scheduler

_RULE = "evictions"

_SUSPENSION_COUNTED: Final = 500 * MS
"""The node notices a suspension only when the time since its last tick is longer than two ticks."""

_ROUNDING: Final = 1 * MS
"""Deadlines are whole milliseconds."""

_PHASES: Final = {
    Departure.NOT_REJOINED: GroupState.PREPARING_REBALANCE,
    Departure.SYNC_EXPIRED: GroupState.COMPLETING_REBALANCE,
}
"""The state in which the rebalance timeout begins."""


@value
class _Timeouts:
    session: int
    rebalance: int


class Evictions:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._suspended = 0
        self._timeouts: dict[tuple[str, str], _Timeouts] = {}
        """By group and member id."""
        self._heard: dict[tuple[str, str], int] = {}
        """The last session of a member began then or later; in running time."""
        self._entered: dict[tuple[str, GroupState], int] = {}
        """When a group has entered a state last, in running time."""

    @property
    def running(self) -> int:
        """The time in which the node has run."""
        return self._scheduler.now - self._suspended

    def node_resumed(self, suspended: int) -> None:
        self._suspended += max(0, suspended - _SUSPENSION_COUNTED)

    def node_started(self) -> None:
        """All sessions begin again."""
        self._heard = dict.fromkeys(self._timeouts, self.running)

    def joined(self, request: Any, response: Any) -> None:
        """A join was answered with a generation."""
        session_ms, rebalance_ms = request.session_timeout_ms, request.rebalance_timeout_ms
        self._timeouts[request.group_id, response.member_id] = _Timeouts(
            session=session_ms * MS,
            # The oldest requests have no rebalance timeout.
            rebalance=(session_ms if rebalance_ms < 0 else rebalance_ms) * MS,
        )

    def heard(self, group_id: str, member_id: str, arrived: int) -> None:
        """A heartbeat or commit that arrived then restarted the member's session. As in Kafka, a
        repeated join or sync of a stable group does not."""
        key = (group_id, member_id)
        self._heard[key] = max(arrived, self._heard.get(key, 0))

    def groups_changed(self, events: Iterable[GroupEvent]) -> None:
        for event in events:
            if isinstance(event, StateChanged):
                self._entered[event.group_id, event.after] = self.running
            elif isinstance(event, MemberGone):
                self._check(event)

    def _check(self, gone: MemberGone) -> None:
        key = (gone.group_id, gone.party.member_id)
        timeouts = self._timeouts.get(key)
        if timeouts is None:
            return  # its first join was never answered
        if gone.departure is Departure.SESSION_EXPIRED:
            if key in self._heard:
                self._check_time(gone, self._heard[key], timeouts.session)
        elif gone.departure in _PHASES:
            # The group may be stable again when a sync expires: its leader has synced in time.
            began = self._entered[gone.group_id, _PHASES[gone.departure]]
            self._check_time(gone, began, timeouts.rebalance)

    def _check_time(self, gone: MemberGone, since: int, timeout: int) -> None:
        waited = self.running - since
        if waited < timeout - _ROUNDING:
            what = f"{gone.party.member_id} of {gone.group_id} is gone ({gone.departure})"
            raise Violation(_RULE, f"{what} after {waited // MS} of {timeout // MS} ms")
