"""Runs a node as a process until SIGTERM or SIGINT."""

import asyncio
import contextlib
import gc
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kohort.node.addresses import MetricsPage
from kohort.node.broker import Address
from kohort.node.config import BrokerConfig
from kohort.node.server import Server
from kohort.wire.malloc_tuning import keep_freed_memory

_YOUNG_OBJECTS_MAX: Final = 10_000
"""The threshold of the youngest garbage collector generation; Python's default is 700."""


def serve(
    host: str,
    port: int,
    data: Path,
    settings: BrokerConfig,
    *,
    metrics: MetricsPage | None = None,
    on_ready: Callable[[Address, Address], None],
) -> None:
    """Serve until SIGTERM or SIGINT, then shut down cleanly.

    `on_ready` takes the address to connect to, and the one that the node advertises.
    """
    _raise_file_limit()
    _tune_garbage_collector()
    keep_freed_memory()
    asyncio.run(_serve(host, port, data, settings, metrics=metrics, on_ready=on_ready))


def _raise_file_limit() -> None:
    """Each connection and each open partition needs a file descriptor; 1024 are not enough."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _tune_garbage_collector() -> None:
    """Hundreds of requests wait for a sync. A collector with Python's default threshold would
    traverse them repeatedly and find no garbage."""
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS_MAX, 10, 10)


async def _serve(
    host: str,
    port: int,
    data: Path,
    settings: BrokerConfig,
    *,
    metrics: MetricsPage | None,
    on_ready: Callable[[Address, Address], None],
) -> None:
    server = Server(settings, data)
    loop = asyncio.get_running_loop()
    # Installed before the start, because recovering a large log takes long.
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, server.stopping.set)
    address = await server.start(host, port, metrics=metrics)
    on_ready(address, server.broker.address)
    await server.run()
    await server.stop()
