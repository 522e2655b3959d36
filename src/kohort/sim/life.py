"""A client's process: it runs, it may be paused as a whole, and it ends once."""

from collections import deque
from collections.abc import Callable

from kohort.sim.timeline import MS, Action, Appointment, Timeline


class Reminder:
    """Something a process will do, unless it thinks better of it, even at the last moment."""

    __slots__ = ("_action", "appointment")

    def __init__(self, action: Action) -> None:
        self._action: Action | None = action
        self.appointment: Appointment | None = None

    def fire(self) -> None:
        action, self._action = self._action, None
        if action is not None:
            action()

    def cancel(self) -> None:
        self._action = None
        if self.appointment is not None:
            self.appointment.cancel()


class Life:
    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._paused_until = 0
        self._backlog: deque[Callable[[], None]] = deque()
        self.is_running = True

    def enter(self, action: Action) -> None:
        """Something happens to this process: now, when it is awake again, or never."""
        if not self.is_running:
            return
        if self._backlog or self._timeline.now < self._paused_until:
            self._backlog.append(action)
        else:
            action()

    def later(self, delay_ms: float, action: Action) -> Reminder:
        reminder = Reminder(action)
        reminder.appointment = self._timeline.after(
            int(delay_ms * MS), lambda: self.enter(reminder.fire)
        )
        return reminder

    def pause(self, for_ms: int) -> None:
        """Not even time passes for it: what was due meanwhile is found on waking."""
        until = self._timeline.now + for_ms * MS
        if until > self._paused_until:
            self._paused_until = until
            self._timeline.after(for_ms * MS, self._wake)

    def end(self) -> None:
        self.is_running = False
        self._backlog.clear()

    def _wake(self) -> None:
        while self._backlog and self._timeline.now >= self._paused_until:
            self._backlog.popleft()()
