"""Serves the metrics at http://HOST:PORT/metrics in the Prometheus text format.

It runs on the node's event loop, so the counters need no locks. One metric is rendered per loop
iteration, and requests are handled in between. Every other path is a 404.

A request for an unknown host name is refused, which prevents DNS rebinding by other web sites.
"""

import asyncio
import re
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
from kohort.settings.hosts import AllowedHosts

_REQUEST_BYTES_MAX: Final = 8192
"""The largest HTTP request. Prometheus sends about 400 bytes."""

SECONDS_MAX: Final = 10.0
"""For sending the request and reading the response."""

CONNECTIONS_MAX: Final = 16
"""Each may hold one rendered page in memory; usually there are at most two scrapers. A further one
replaces the one whose request has been incomplete for longest, so that half-sent requests cannot
keep scrapers out."""

_WRONG_HOST: Final = (
    b"the metrics are not served under this host name: allow it with --allowed-host\n"
)
_HOST_HEADER: Final = re.compile(rb"\r\nhost:[ \t]*([^\r\n]*?)[ \t]*(?=\r\n)", re.IGNORECASE)

Buckets: TypeAlias = list[tuple[str, float]]


class MetricsCollector:
    """Converts the rows of `metrics_table` to metric families of prometheus_client."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def collect(self) -> Iterator[Family]:
        self._broker.metrics.remove_deleted_groups()
        for metric in METRICS:
            yield _family(metric, self._broker)


class _SingleFamilyRegistry:
    """A registry with one metric family, which is what `generate_latest` takes."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def collect(self) -> tuple[Family]:
        return (self._family,)


class MetricsServer:
    """An HTTP server for the one page /metrics, under these host names."""

    def __init__(
        self, broker: Broker, hosts: AllowedHosts, *, seconds_max: float = SECONDS_MAX
    ) -> None:
        self.hosts = hosts
        self.seconds_max = seconds_max
        self._registry = CollectorRegistry(support_collectors_without_names=True)
        self._registry.register(MetricsCollector(broker))
        ProcessCollector(registry=self._registry)
        self.connections: dict[_MetricsConnection, None] = {}
        """In the order in which they were accepted."""

    async def start(self, host: str, port: int) -> int:
        """Return the port; port 0 selects a free one."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _MetricsConnection(self, loop), host, port)
        bound: int = self._server.sockets[0].getsockname()[1]
        return bound

    @property
    def bound_hosts(self) -> list[str]:
        """The addresses of the listening sockets."""
        return [each.getsockname()[0] for each in self._server.sockets]

    def accept(self, connection: "_MetricsConnection") -> None:
        if len(self.connections) >= CONNECTIONS_MAX:
            waiting = (each for each in self.connections if each.is_waiting)
            next(waiting, connection).abort()
        self.connections[connection] = None

    def stop(self) -> None:
        self._server.close()
        for each in tuple(self.connections):
            each.abort()

    def pieces(self) -> Iterator[bytes]:
        """Render the page, one metric at a time."""
        for family in self._registry.collect():
            yield generate_latest(_SingleFamilyRegistry(family))


class _MetricsConnection(asyncio.Protocol):
    """One HTTP connection, which carries one request."""

    def __init__(self, server: MetricsServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._head = b""
        self._body: list[bytes] = []
        self._pieces: Iterator[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._deadline = self._loop.call_later(self._server.seconds_max, self.abort)
        self._server.accept(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's name
        self._deadline.cancel()
        self._server.connections.pop(self, None)

    @property
    def is_waiting(self) -> bool:
        """Whether its request is incomplete."""
        return self._pieces is None and not self._transport.is_closing()

    def data_received(self, data: bytes) -> None:
        self._head += data
        if len(self._head) > _REQUEST_BYTES_MAX:
            self.abort()
        elif self._pieces is None and b"\r\n\r\n" in self._head:
            method, target, *_ = (*self._head.split(maxsplit=2), b"", b"")
            if not self._is_host_allowed():
                self._pieces = iter(())
                self._respond("421 Misdirected Request", "text/plain", _WRONG_HOST)
            elif method == b"GET" and target.partition(b"?")[0] == b"/metrics":
                self._pieces = self._server.pieces()
                self._render_next()
            else:
                self._pieces = iter(())
                self._respond("404 Not Found", "text/plain", b"see /metrics\n")

    def abort(self) -> None:
        self._transport.abort()

    def _is_host_allowed(self) -> bool:
        given = _HOST_HEADER.findall(self._head.partition(b"\r\n\r\n")[0] + b"\r\n")
        if len(given) != 1:
            return False
        connected_to: str = self._transport.get_extra_info("sockname")[0]
        return self._server.hosts.allows(given[0].decode("latin-1"), connected_to)

    def _render_next(self) -> None:
        """Render one metric per loop iteration."""
        if self._transport.is_closing() or self._pieces is None:
            return
        piece = next(self._pieces, None)
        if piece is None:
            self._respond("200 OK", CONTENT_TYPE_PLAIN_0_0_4, b"".join(self._body))
        else:
            self._body.append(piece)
            self._loop.call_soon(self._render_next)

    def _respond(self, status: str, content_type: str, body: bytes) -> None:
        self._transport.write(_response(status, content_type, body))
        self._transport.close()


def _response(status: str, content_type: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n"
        "X-Content-Type-Options: nosniff\r\n\r\n"
    )
    return head.encode() + body


def _family(metric: Metric, broker: Broker) -> Family:
    name, meaning, labels = metric.name, metric.meaning, metric.labels
    match metric.kind:
        case "counter" | "gauge":
            family_class = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
            family = family_class(name, meaning, labels=labels)
            for values, sample in metric.read(broker):
                assert not isinstance(sample, Histogram), f"{name} is not a histogram"
                family.add_metric(values, sample)
            return family
        case "histogram":
            histograms = HistogramMetricFamily(name, meaning, labels=labels)
            for values, sample in metric.read(broker):
                assert isinstance(sample, Histogram), f"{name} is a histogram"
                histograms.add_metric(values, _buckets(sample), sample.total)
            return histograms


def _buckets(histogram: Histogram) -> Buckets:
    """Cumulative, as Prometheus expects: each bucket includes the smaller ones."""
    buckets: Buckets = []
    count = 0
    for name, own in zip((*map(str, histogram.bounds), "+Inf"), histogram.counts, strict=True):
        count += own
        buckets.append((name, count))
    return buckets
