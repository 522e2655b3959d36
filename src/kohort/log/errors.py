"""The one exception family of the log: whatever happens, nothing else leaves."""

from collections.abc import Mapping
from typing import Final

from kohort.types import ErrorCode


class LogError(Exception):
    """Something cannot be kept, found or opened."""


class Refused(LogError):
    """A request that cannot be granted, with the code a client is told."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(f"{code.name}: {reason}")
        self.code = code
        self.reason = reason


class NotOneBatch(Refused):
    """What came for a partition is no batch, not a whole one, or more than one."""


class RecordsRefused(Refused):
    """Some records of a batch keep all of it out; told by their place in it, with their faults."""

    def __init__(self, code: ErrorCode, faults: Mapping[int, str]) -> None:
        super().__init__(code, f"{len(faults)} of its records: {next(iter(faults.values()))}")
        self.faults = faults


class StorageError(LogError):
    """The disk failed, or is full. What was being appended is not in the log."""

    code: Final = ErrorCode.KAFKA_STORAGE_ERROR

    def __init__(self, path: str, action: str, reason: str) -> None:
        super().__init__(f"{path}: {action}: {reason}")
        self.path = path
        self.action = action
        self.reason = reason


class Damaged(StorageError):
    """A file does not hold what was written to it."""


class DirectoryRefused(LogError):
    """A data directory that is somebody else's, is in use, or cannot be written."""
