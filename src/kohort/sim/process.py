"""A client process: it can be paused as a whole, and it ends once."""

from collections import deque

from kohort.virtual_time.scheduler import MS, Action, ScheduledCall, Scheduler


class ProcessTimer:
    """A timer of a process. It can be cancelled even while it waits for a paused process."""

    __slots__ = ("_action", "scheduled")

    def __init__(self, action: Action) -> None:
        self._action: Action | None = action
        self.scheduled: ScheduledCall | None = None

    def fire(self) -> None:
        action, self._action = self._action, None
        if action is not None:
            action()

    def cancel(self) -> None:
        self._action = None
        if self.scheduled is not None:
            self.scheduled.cancel()


class ClientProcess:
    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._paused_until = 0
        self._backlog: deque[Action] = deque()
        self.is_running = True

    def enter(self, action: Action) -> None:
        """Run an action now, after the pause, or never if the process has ended."""
        if not self.is_running:
            return
        if self._backlog or self._scheduler.now < self._paused_until:
            self._backlog.append(action)
        else:
            action()

    def later(self, delay_ms: float, action: Action) -> ProcessTimer:
        reminder = ProcessTimer(action)
        reminder.scheduled = self._scheduler.after(
            int(delay_ms * MS), lambda: self.enter(reminder.fire)
        )
        return reminder

    def pause(self, for_ms: int) -> None:
        """Run nothing for this time; actions that are due run after it."""
        until = self._scheduler.now + for_ms * MS
        if until > self._paused_until:
            self._paused_until = until
            self._scheduler.after(for_ms * MS, self._wake)

    def end(self) -> None:
        self.is_running = False
        self._backlog.clear()

    def _wake(self) -> None:
        while self._backlog and self._scheduler.now >= self._paused_until:
            self._backlog.popleft()()
