"""A server on a thread of its own, for other threads of the process."""

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any, Final

from kohort.node.addresses import HttpEndpoint
from kohort.node.broker import Address
from kohort.node.config import BrokerConfig
from kohort.node.control.errors import ControlError
from kohort.node.control.operations import run_operation
from kohort.node.server import NodeStartError, Server

_LOADING_S_MAX: Final = 60.0
"""For reading `__consumer_offsets`, which takes seconds for millions of commits."""


class BrokerThread:
    """Runs a server once: `start`, then `stop` or `kill`."""

    def __init__(
        self,
        settings: BrokerConfig,
        data: Path,
        *,
        metrics: HttpEndpoint | None = None,
        control: HttpEndpoint | None = None,
    ) -> None:
        self._settings = settings
        self._data = data
        self._metrics = metrics
        self._control = control
        self._decided = threading.Event()
        """It is ready, or has failed."""
        self._is_ready = False
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_killed = False
        self._lock = threading.Lock()
        """For what follows: requests come from any thread, and the loop may end meanwhile."""
        self._is_ended = False
        self._requests: set[Future[Mapping[str, Any]]] = set()
        self.failure: BaseException | None = None
        """The error that stopped the broker, if any; `stop` raises it."""

    def start(self, host: str, port: int) -> Address:
        """Return the address for clients when the broker listens and its groups are loaded."""
        self._thread = threading.Thread(
            target=self._run, args=(host, port), name="kohort-node", daemon=True
        )
        self._thread.start()
        self._decided.wait()
        if self._is_ready:
            return self._address
        self._thread.join()
        raise self.failure or NodeStartError("the node was stopped before it was ready")

    @property
    def metrics_address(self) -> Address | None:
        return self._server.metrics_address

    @property
    def control_address(self) -> Address | None:
        return self._server.control_address

    def request(self, operation: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a control operation on the broker's thread; raises `ControlError`."""
        with self._lock:
            if self._is_ended or self._loop is None:
                raise ControlError(f"cannot {operation}: the node is not running")
            running = run_operation(self._server, operation, body)
            future = asyncio.run_coroutine_threadsafe(running, self._loop)
            self._requests.add(future)
        try:
            return future.result()
        except CancelledError:
            raise ControlError(f"cannot {operation}: the node has stopped") from None
        finally:
            future.cancel()  # for an interrupt of the caller; a completed future ignores it
            with self._lock:
                self._requests.discard(future)

    def stop(self) -> None:
        """Shut down cleanly. Everything acknowledged is stored."""
        self._end()
        if self.failure is not None:
            raise self.failure

    def kill(self) -> None:
        """Stop as a crash does: nothing more is written, and all clients are disconnected."""
        self._is_killed = True
        self._end()

    def _end(self) -> None:
        with self._lock:
            if self._loop is not None and not self._is_ended:
                self._loop.call_soon_threadsafe(self._server.stopping.set)
        # The garbage collector may run this on the broker's own thread.
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self, host: str, port: int) -> None:
        try:
            asyncio.run(self._serve(host, port))
        except BaseException as error:  # `start` and `stop` raise it
            self.failure = error
        finally:
            with self._lock:
                self._is_ended = True
                for future in self._requests:
                    future.cancel()
            self._decided.set()

    async def _serve(self, host: str, port: int) -> None:
        self._server = server = Server(self._settings, self._data)
        with self._lock:
            self._loop = asyncio.get_running_loop()
        self._address = await server.start(host, port, metrics=self._metrics, control=self._control)
        await self._load(server)
        if not server.stopping.is_set():
            self._is_ready = True
            self._decided.set()
            await server.run()
        if self._is_killed:
            server.abandon()
        else:
            await server.stop()

    async def _load(self, server: Server) -> None:
        try:
            async with asyncio.timeout(_LOADING_S_MAX):
                await server.wait_until_loaded()
        except TimeoutError:
            await server.stop()
            raise NodeStartError(
                f"the groups were not loaded within {_LOADING_S_MAX:.0f} s: see the log of the node"
            ) from None
