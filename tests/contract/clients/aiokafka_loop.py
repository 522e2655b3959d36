"""The event loop thread that all aiokafka clients share, and the translation of its errors."""

import asyncio
import threading
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

from aiokafka.errors import (
    CommitFailedError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)

from kohort.types import ErrorCode
from tests.contract.clients.client_library import NoValidOffset, RequestRejected

_DEADLINE_S = 30

T = TypeVar("T")


_LOCK = threading.Lock()
"""Cells run in threads, and `cache` alone would let two of them start a loop each."""


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="aiokafka", daemon=True).start()
    return loop


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the loop, and translate its errors."""
    try:
        with _LOCK:
            loop = _loop()
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(_DEADLINE_S)
    except KafkaError as error:
        raise rejection_of(error) from error


def rejection_of(error: KafkaError) -> Exception:
    if isinstance(error, NoOffsetForPartitionError | OffsetOutOfRangeError):
        return NoValidOffset(str(error))
    if isinstance(error, CommitFailedError):
        # The library does not report which error code the removed member received.
        return RequestRejected("UNKNOWN_MEMBER_ID", str(error))
    code = getattr(error, "errno", None)
    return RequestRejected(
        ErrorCode(code).name if code is not None else type(error).__name__, str(error)
    )
