"""A node that is a process: it runs until a signal asks it to stop."""

import asyncio
import contextlib
import gc
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kohort.node.broker import Address
from kohort.node.config import Settings
from kohort.node.server import Server
from kohort.wire.heap import keep_freed_memory

_YOUNG_OBJECTS_MAX: Final = 10_000
"""That is how many more there are before the collector looks; Python's own number is 700."""


def serve(
    host: str,
    port: int,
    data: Path,
    settings: Settings,
    *,
    metrics: Address | None = None,
    on_ready: Callable[[Address], None],
) -> None:
    """Serve until SIGTERM or SIGINT, then close cleanly."""
    _allow_many_files()
    _collect_rarely()
    keep_freed_memory()
    asyncio.run(_serve(host, port, data, settings, metrics=metrics, on_ready=on_ready))


def _allow_many_files() -> None:
    """Every connection and every partition written to holds one; the usual 1024 are soon gone."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _collect_rarely() -> None:
    """What is loaded stays for good, and requests under way are no garbage: a sync makes hundreds
    of them wait, which the collector would walk through again and again."""
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS_MAX, 10, 10)


async def _serve(
    host: str,
    port: int,
    data: Path,
    settings: Settings,
    *,
    metrics: Address | None,
    on_ready: Callable[[Address], None],
) -> None:
    server = Server(settings, data)
    loop = asyncio.get_running_loop()
    # Before it starts: recovering a large log takes a while, and may be interrupted cleanly too.
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, server.stopping.set)
    address = await server.start(host, port, metrics=metrics)
    on_ready(address)
    await server.run()
    await server.stop()
