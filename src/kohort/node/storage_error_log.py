"""Logs storage errors that clients are told of, or that are retried, once per kind and minute.

A full disk fails every request: one line a minute says so, with the number of failed operations.
"""

from typing import Final

from kohort.log.errors import CorruptFile, LogError, StorageError
from kohort.node import log_events
from kohort.types import Millis

INTERVAL_MS: Final = 60_000


class _Kind:
    """What happened to errors of one kind since the last line about them."""

    __slots__ = ("count", "error", "logged_at")

    def __init__(self) -> None:
        self.count = 0
        self.error: StorageError | None = None
        self.logged_at: Millis | None = None


class StorageErrorLog:
    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}
        self.has_new = False

    def note(self, error: LogError) -> None:
        """Remember an error that is sent to a client; `write` logs it. Other errors of the log are
        ignored."""
        if not isinstance(error, StorageError):
            return
        kind = self._kinds.setdefault(_kind_of(error), _Kind())
        kind.count += 1
        kind.error = kind.error or error
        self.has_new = True

    def write(self, now: Millis) -> None:
        """Log the errors since the last call, unless a line about their kind is recent."""
        self.has_new = False
        for kind in self._kinds.values():
            error = kind.error
            # A clock that was set back must not silence anything.
            is_recent = kind.logged_at is not None and 0 <= now - kind.logged_at < INTERVAL_MS
            if error is None or is_recent:
                continue
            directory, slash, _ = error.path.partition("/")
            log_events.warning(
                "storage-error",
                partition=directory if slash else "none",
                path=error.path,
                action=error.action,
                reason=error.reason,
                count=kind.count,
            )
            kind.count, kind.error, kind.logged_at = 0, None, now


def _kind_of(error: StorageError) -> str:
    """There are few kinds: the reasons of the operating system, and damaged files."""
    return "corrupt" if isinstance(error, CorruptFile) else error.reason
