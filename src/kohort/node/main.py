"""Runs a node as a process until SIGTERM or SIGINT."""

import asyncio
import contextlib
import gc
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Final

from kohort.node.addresses import HttpEndpoint, NodeAddresses
from kohort.node.config import BrokerConfig
from kohort.node.server import Server
from kohort.wire.malloc_tuning import keep_freed_memory

_YOUNG_OBJECTS_MAX: Final = 10_000
"""The threshold of the youngest garbage collector generation; Python's default is 700."""

_READ_BYTES: Final = 4096


def serve(
    host: str,
    port: int,
    data: Path,
    settings: BrokerConfig,
    *,
    metrics: HttpEndpoint | None = None,
    control: HttpEndpoint | None = None,
    stop_at_eof: int | None = None,
    on_ready: Callable[[NodeAddresses], None],
    on_loaded: Callable[[NodeAddresses], None],
) -> None:
    """Serve until SIGTERM or SIGINT, then shut down cleanly.

    It also stops when nothing is left to read from the file descriptor `stop_at_eof`. `on_ready`
    is called when the node listens, `on_loaded` when it serves groups too.
    """
    _raise_file_limit()
    _tune_garbage_collector()
    keep_freed_memory()
    server = Server(settings, data)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        # Installed before the start, because recovering a large log takes long.
        for name in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(name, server.stopping.set)
        if stop_at_eof is not None:
            _watch_for_eof(loop, stop_at_eof, server.stopping.set)
        address = await server.start(host, port, metrics=metrics, control=control)
        addresses = NodeAddresses(
            bootstrap=address,
            advertised=server.broker.address,
            metrics=server.metrics_address,
            control=server.control_address,
        )
        on_ready(addresses)
        if await server.wait_until_loaded():
            on_loaded(addresses)
        await server.run()
        await server.stop()

    asyncio.run(run())


def _watch_for_eof(
    loop: asyncio.AbstractEventLoop, descriptor: int, stop: Callable[[], None]
) -> None:
    """Read on a thread, because the descriptor may be of a kind that no event loop can watch."""

    def read() -> None:
        with contextlib.suppress(OSError):
            while os.read(descriptor, _READ_BYTES):
                pass
        with contextlib.suppress(RuntimeError):  # the loop is closed: the node has stopped
            loop.call_soon_threadsafe(stop)

    Thread(target=read, name="kohort-eof", daemon=True).start()


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
