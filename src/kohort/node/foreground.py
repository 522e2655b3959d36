"""A node that is a process: it runs until a signal asks it to stop."""

import asyncio
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
    asyncio.run(_serve(host, port, data, settings, metrics=metrics, on_ready=on_ready))


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
