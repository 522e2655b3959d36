"""A broker inside your process, for tests and notebooks.

with kohort.Node() as node:
    consumer = SomeKafkaClient(bootstrap_servers=node.bootstrap_servers)
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kohort.node.addresses import MetricsPage
from kohort.node.broker import Address
from kohort.node.broker_thread import BrokerThread
from kohort.node.config import BrokerConfig, split_address, with_advertised
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
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._metrics: MetricsPage | None = None
        if metrics is not None:
            metrics_host, metrics_port = split_address("metrics", metrics)
            self._metrics = MetricsPage(
                listen=Address(host=metrics_host, port=metrics_port),
                allowed_hosts=read_allowed_hosts(allowed_hosts),
            )
        self._broker: BrokerThread | None = None
        self._address: Address | None = None

    @property
    def bootstrap_servers(self) -> str:
        """The `bootstrap.servers` for Kafka clients."""
        if self._address is None:
            raise RuntimeError("the node is not running; use it as a context manager or start()")
        return str(self._address)

    @property
    def metrics_url(self) -> str:
        """The URL of the metrics page, if it was requested."""
        if self._broker is None or self._broker.metrics_address is None:
            raise RuntimeError("no metrics are served; start the node with metrics='127.0.0.1:0'")
        return f"http://{self._broker.metrics_address}/metrics"

    @property
    def failure(self) -> BaseException | None:
        """The error that stopped the broker, if any; `stop` raises it."""
        return None if self._broker is None else self._broker.failure

    def start(self) -> Self:
        if self._data is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="kohort-")
        data = self._data or Path(self._temporary.name if self._temporary else "")
        self._broker = BrokerThread(self._settings, data, metrics=self._metrics)
        self._address = self._broker.start(self._host, self._port)
        return self

    def stop(self) -> None:
        """Shut down cleanly. Everything acknowledged is stored."""
        if self._broker is None:
            return
        self._address = None
        try:
            self._broker.stop()
        finally:
            if self._temporary is not None:
                self._temporary.cleanup()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()


def _text(given: object) -> str:
    return str(given).lower() if isinstance(given, bool) else str(given)
