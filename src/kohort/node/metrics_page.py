"""The node's figures at http://HOST:PORT/metrics, in the text form that Prometheus reads.

Served on the node's own loop, so that counting needs no locks. The page is written a figure at a
time, and clients are answered in between. There is nothing here but that one page.
"""

import asyncio
from collections.abc import Iterator
from typing import Final, TypeAlias, cast

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import CollectorRegistry

from kohort.node.broker import Broker
from kohort.node.metrics import Histogram
from kohort.node.metrics_table import METRICS, Metric

_REQUEST_BYTES_MAX: Final = 8192
"""Of a request for the page; what Prometheus sends is a twentieth of it."""

_SECONDS_MAX: Final = 10.0
"""To ask, and to take the answer."""

_ASKING_MAX: Final = 16
"""At one time. Each costs a page of memory, and there are seldom more than two."""

Buckets: TypeAlias = list[tuple[str, float]]


class Collector:
    """The rows of the table as prometheus_client knows figures."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def collect(self) -> Iterator[Family]:
        self._broker.figures.forget_the_dead()
        for metric in METRICS:
            yield _family(metric, self._broker)


class _Single:
    """A registry of one figure."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def collect(self) -> tuple[Family]:
        return (self._family,)


class MetricsPage:
    """Listens from `start` to `stop`, and answers everyone who asks for the page."""

    def __init__(self, broker: Broker) -> None:
        self._registry = CollectorRegistry(support_collectors_without_names=True)
        self._registry.register(Collector(broker))
        ProcessCollector(registry=self._registry)
        self.asking: set[_Asking] = set()

    async def start(self, host: str, port: int) -> int:
        """Returns the port, which may have been any."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Asking(self, loop), host, port)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    def stop(self) -> None:
        self._server.close()
        for each in tuple(self.asking):
            each.hang_up()

    def pieces(self) -> Iterator[bytes]:
        """The page, a figure at a time."""
        for family in self._registry.collect():
            yield generate_latest(_Single(family))


class _Asking(asyncio.Protocol):
    """Somebody who asks for the page, once."""

    def __init__(self, page: MetricsPage, loop: asyncio.AbstractEventLoop) -> None:
        self._page = page
        self._loop = loop
        self._head = b""
        self._body: list[bytes] = []
        self._pieces: Iterator[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._deadline = self._loop.call_later(_SECONDS_MAX, self.hang_up)
        self._page.asking.add(self)
        if len(self._page.asking) > _ASKING_MAX:
            self.hang_up()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's name
        self._deadline.cancel()
        self._page.asking.discard(self)

    def data_received(self, data: bytes) -> None:
        self._head += data
        if len(self._head) > _REQUEST_BYTES_MAX:
            self.hang_up()
        elif self._pieces is None and b"\r\n\r\n" in self._head:
            method, target, *_ = (*self._head.split(maxsplit=2), b"", b"")
            if method == b"GET" and target.partition(b"?")[0] == b"/metrics":
                self._pieces = self._page.pieces()
                self._go_on()
            else:
                self._pieces = iter(())
                self._answer("404 Not Found", "text/plain", b"see /metrics\n")

    def hang_up(self) -> None:
        self._transport.abort()

    def _go_on(self) -> None:
        """A figure in each turn of the loop."""
        if self._transport.is_closing() or self._pieces is None:
            return
        piece = next(self._pieces, None)
        if piece is None:
            self._answer("200 OK", CONTENT_TYPE_PLAIN_0_0_4, b"".join(self._body))
        else:
            self._body.append(piece)
            self._loop.call_soon(self._go_on)

    def _answer(self, status: str, content_type: str, body: bytes) -> None:
        self._transport.write(_response(status, content_type, body))
        self._transport.close()


def _response(status: str, content_type: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def _family(metric: Metric, broker: Broker) -> Family:
    name, meaning, labels = metric.name, metric.meaning, metric.labels
    match metric.kind:
        case "counter" | "gauge":
            made = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = made(name, meaning, labels=labels)
            for values, figure in metric.read(broker):
                assert not isinstance(figure, Histogram), f"{name} is no histogram"
                family.add_metric(values, figure)
            return family
        case "histogram":
            histograms = HistogramMetricFamily(name, meaning, labels=labels)
            for values, figure in metric.read(broker):
                assert isinstance(figure, Histogram), f"{name} is a histogram"
                histograms.add_metric(values, _buckets(figure), figure.total)
            return histograms


def _buckets(histogram: Histogram) -> Buckets:
    """Each with all that is below it, as Prometheus has them."""
    buckets: Buckets = []
    count = 0
    for name, own in zip((*map(str, histogram.bounds), "+Inf"), histogram.counts, strict=True):
        count += own
        buckets.append((name, count))
    return buckets
