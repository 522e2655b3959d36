"""A node that is a process: it runs until a signal asks it to stop."""

import asyncio
import contextlib
import resource
import signal
from collections.abc import Callable
from pathlib import Path

from kohort.node.broker import Address
from kohort.node.config import Settings
from kohort.node.server import Server


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
    asyncio.run(_serve(host, port, data, settings, metrics=metrics, on_ready=on_ready))


def _allow_many_files() -> None:
    """Every connection and every partition written to holds one; the usual 1024 are soon gone."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


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
