"""A server on a thread of its own, for other threads of the process."""

import asyncio
import contextlib
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kohort.node.addresses import MetricsPage
from kohort.node.broker import Address
from kohort.node.config import BrokerConfig
from kohort.node.control.operations import run_operation
from kohort.node.server import Server


class BrokerThread:
    """Runs a server once: `start`, then `stop`."""

    def __init__(
        self, settings: BrokerConfig, data: Path, *, metrics: MetricsPage | None = None
    ) -> None:
        self._settings = settings
        self._data = data
        self._metrics = metrics
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None
        self.failure: BaseException | None = None
        """The error that stopped the broker, if any; `stop` raises it."""

    def start(self, host: str, port: int) -> Address:
        """Return the address for clients when the broker listens."""
        self._thread = threading.Thread(
            target=self._run, args=(host, port), name="kohort-node", daemon=True
        )
        self._thread.start()
        self._ready.wait()
        if self.failure is not None:
            self._thread.join()
            raise self.failure
        return self._address

    @property
    def metrics_address(self) -> Address | None:
        return self._server.metrics_address

    def request(self, operation: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a control operation on the broker's thread; raises `ControlError`."""
        running = run_operation(self._server, operation, body)
        return asyncio.run_coroutine_threadsafe(running, self._loop).result()

    def stop(self) -> None:
        """Shut down cleanly. Everything acknowledged is stored."""
        if self._thread is None:
            return
        with contextlib.suppress(RuntimeError):  # it has failed, and its event loop is closed
            self._loop.call_soon_threadsafe(self._server.stopping.set)
        self._thread.join()
        self._thread = None
        if self.failure is not None:
            raise self.failure

    def _run(self, host: str, port: int) -> None:
        try:
            asyncio.run(self._serve(host, port))
        except BaseException as error:  # `start` and `stop` raise it
            self.failure = error
        finally:
            self._ready.set()

    async def _serve(self, host: str, port: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = Server(self._settings, self._data)
        self._address = await self._server.start(host, port, metrics=self._metrics)
        self._ready.set()
        await self._server.run()
        await self._server.stop()
