"""The exceptions of the log. Its public methods raise no others."""

from collections.abc import Mapping
from typing import ClassVar

from kohort.types import ErrorCode


class LogError(Exception):
    """Base class of all exceptions of the log."""


class RequestRejected(LogError):
    """The log rejects a request; `code` is the error code for the response."""

    def __init__(self, code: ErrorCode, reason: str) -> None:
        super().__init__(f"{code.name}: {reason}")
        self.code = code
        self.reason = reason


class InvalidBatch(RequestRejected):
    """The bytes are not exactly one complete record batch."""


class InvalidRecords(RequestRejected):
    """Some records are invalid, so the whole batch is rejected."""

    def __init__(self, code: ErrorCode, faults: Mapping[int, str]) -> None:
        super().__init__(code, f"{len(faults)} invalid records: {next(iter(faults.values()))}")
        self.faults = faults
        """The reason for each invalid record, by its index in the batch."""


class StorageError(LogError):
    """The disk failed or is full. The batches of the failed append are not in the log."""

    code: ClassVar[ErrorCode] = ErrorCode.KAFKA_STORAGE_ERROR

    def __init__(self, path: str, action: str, reason: str) -> None:
        super().__init__(f"{path}: {action}: {reason}")
        self.path = path
        self.action = action
        self.reason = reason


def without_frames(error: StorageError) -> StorageError:
    """The error without its traceback and causes: they would keep the buffers of its frames."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


class OutOfResources(StorageError):
    """The operating system has no descriptor or memory left. Nothing was changed; the same
    operation may succeed later."""


class CorruptFile(StorageError):
    """The content of a file is invalid. As in Kafka, a consumer that reads there gets an error that
    it reports with the offset, instead of one that it retries forever."""

    code: ClassVar[ErrorCode] = ErrorCode.CORRUPT_MESSAGE


class BadIndex(CorruptFile):
    """An index does not match the batches of its segment. It can be rebuilt."""

    def __init__(self, path: str, reason: str, offset: int = -1) -> None:
        """`offset` is the one that the wrong entry names."""
        super().__init__(path, "look up", reason)
        self.offset = offset


class RecordsMissing(StorageError):
    """Records that the checkpoints know are missing. The partition is refused, because starting it
    again at a lower offset would give other records to consumers that have read the lost ones."""


class DataDirectoryError(LogError):
    """The data directory is in use, is not writable, or was not created by Kohort."""
