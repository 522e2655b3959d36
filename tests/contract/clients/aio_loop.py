"""aiokafka's loop, which runs on a thread for all of its clients, and what its errors mean."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from functools import cache
from typing import Any, TypeVar

from aiokafka.errors import (
    CommitFailedError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
)

from kohort.types import ErrorCode
from tests.contract.clients.library import NoOffset, Refused

_DEADLINE_S = 30

T = TypeVar("T")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="aiokafka", daemon=True).start()
    return loop


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """What it gave, or one of our errors for one of its own."""
    try:
        return asyncio.run_coroutine_threadsafe(coroutine, _loop()).result(_DEADLINE_S)
    except KafkaError as error:
        raise refusal_of(error) from error


def refusal_of(error: KafkaError) -> Exception:
    if isinstance(error, NoOffsetForPartitionError | OffsetOutOfRangeError):
        return NoOffset(str(error))
    if isinstance(error, CommitFailedError):
        # It does not say which of the errors it was that a lost member gets.
        return Refused("UNKNOWN_MEMBER_ID", str(error))
    code = getattr(error, "errno", None)
    return Refused(ErrorCode(code).name if code is not None else type(error).__name__, str(error))


def run_now(act: Callable[[], object]) -> None:
    """On the loop's thread, where all of its calls belong."""

    async def do() -> None:
        act()

    run(do())
