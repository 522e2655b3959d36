"""Writes log lines of the node and the consumers to the trace."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LOGGER = logging.getLogger("kohort")


class _Handler(logging.Handler):
    def __init__(self, write: Callable[[str, str], None]) -> None:
        super().__init__()
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        self._write(record.name.removeprefix("kohort."), record.getMessage())


@contextmanager
def capture_logs(write: Callable[[str, str], None]) -> Iterator[None]:
    """`write` gets the logger's name and the line."""
    handlers, level, propagates = _LOGGER.handlers, _LOGGER.level, _LOGGER.propagate
    _LOGGER.handlers, _LOGGER.propagate = [_Handler(write)], False
    _LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        _LOGGER.handlers, _LOGGER.propagate = handlers, propagates
        _LOGGER.setLevel(level)
