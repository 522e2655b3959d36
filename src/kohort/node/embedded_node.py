"""A broker inside your process, for tests and notebooks.

with kohort.Node() as node:
    consumer = SomeKafkaClient(bootstrap_servers=node.bootstrap_servers)
"""

import asyncio
import contextlib
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kohort.node.addresses import MetricsPage
from kohort.node.broker import Address
from kohort.node.config import BrokerConfig, split_address, with_advertised
from kohort.node.server import Server
from kohort.settings.hosts import read_allowed_hosts


class Node:
    """Runs a broker on its own thread. Without `data` it uses a temporary directory.

    `advertise` is the HOST[:PORT] that clients are told to connect to, by default the address it
    listens on. `metrics` is the HOST:PORT of the Prometheus metrics page; port 0 selects a free
    port. The page answers to `allowed_hosts` too.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        advertise: str | None = None,
        data: str | Path | None = None,
        settings: Mapping[str, object] | None = None,
        metrics: str | None = None,
        allowed_hosts: Sequence[str] = (),
    ) -> None:
        texts = {name: _text(given) for name, given in (settings or {}).items()}
        self._settings = with_advertised(BrokerConfig(texts), "advertise", advertise or "")
        self._host, self._port = host, port
        self._data = None if data is None else Path(data)
        self._metrics: MetricsPage | None = None
        if metrics is not None:
            metrics_host, metrics_port = split_address("metrics", metrics)
            self._metrics = MetricsPage(
                listen=Address(host=metrics_host, port=metrics_port),
                allowed_hosts=read_allowed_hosts(allowed_hosts),
            )
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._address: Address | None = None
        self._thread: threading.Thread | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The `bootstrap.servers` for Kafka clients."""
        if self._address is None:
            raise RuntimeError("the node is not running; use it as a context manager or start()")
        return str(self._address)

    @property
    def metrics_url(self) -> str:
        """The URL of the metrics page, if it was requested."""
        if self._address is None or self._server.metrics_address is None:
            raise RuntimeError("no metrics are served; start the node with metrics='127.0.0.1:0'")
        return f"http://{self._server.metrics_address}/metrics"

    @property
    def failure(self) -> BaseException | None:
        """The error that stopped the broker, if any; `stop` raises it."""
        return self._failure

    def start(self) -> Self:
        self._thread = threading.Thread(target=self._run, name="kohort-node", daemon=True)
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    def stop(self) -> None:
        """Shut down cleanly. Everything acknowledged is stored."""
        if self._thread is None or self._address is None:
            return
        with contextlib.suppress(RuntimeError):  # it has failed, and its event loop is closed
            self._loop.call_soon_threadsafe(self._server.stopping.set)
        self._thread.join()
        self._thread = self._address = None
        if self._failure is not None:
            raise self._failure

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            if self._data is not None:
                asyncio.run(self._serve(self._data))
            else:
                with tempfile.TemporaryDirectory(prefix="kohort-") as directory:
                    asyncio.run(self._serve(Path(directory)))
        except BaseException as error:  # `start` and `stop` raise it
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self, data: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._server = Server(self._settings, data)
        self._address = await self._server.start(self._host, self._port, metrics=self._metrics)
        self._ready.set()
        await self._server.run()
        await self._server.stop()


def _text(given: object) -> str:
    return str(given).lower() if isinstance(given, bool) else str(given)
