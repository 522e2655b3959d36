"""Serves the metrics at http://HOST:PORT/metrics in the Prometheus text format.

It runs on the node's event loop, so the counters need no locks. One metric is rendered per loop
iteration, and requests are handled in between. Every other path is a 404.
"""

import asyncio
from collections.abc import Iterator
from typing import Final, TypeAlias

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
from kohort.node.http_server import (
    SECONDS_MAX,
    HttpConnection,
    HttpRequest,
    HttpServer,
    HttpServerLimits,
)
from kohort.node.metrics import Histogram
from kohort.node.metrics_table import METRICS, Metric
from kohort.settings.hosts import AllowedHosts

CONNECTIONS_MAX: Final = 16
"""Each may hold one rendered page in memory; usually there are at most two scrapers."""

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
        self._registry = CollectorRegistry(support_collectors_without_names=True)
        self._registry.register(MetricsCollector(broker))
        ProcessCollector(registry=self._registry)
        limits = HttpServerLimits(connections_max=CONNECTIONS_MAX, seconds_max=seconds_max)
        self.http = HttpServer(hosts, limits, self._handle, purpose="the metrics are")

    def _handle(self, connection: HttpConnection, request: HttpRequest) -> None:
        if request.method != "GET" or request.path != "/metrics":
            connection.respond("404 Not Found", "text/plain", b"see /metrics\n")
            return
        _PageRenderer(connection, self.pieces()).render_next()

    def pieces(self) -> Iterator[bytes]:
        """Render the page, one metric at a time."""
        for family in self._registry.collect():
            yield generate_latest(_SingleFamilyRegistry(family))


class _PageRenderer:
    def __init__(self, connection: HttpConnection, pieces: Iterator[bytes]) -> None:
        self._connection = connection
        self._pieces = pieces
        self._body: list[bytes] = []

    def render_next(self) -> None:
        """Render one metric per loop iteration."""
        if self._connection.is_closing:
            return
        piece = next(self._pieces, None)
        if piece is None:
            body = b"".join(self._body)
            self._connection.respond("200 OK", CONTENT_TYPE_PLAIN_0_0_4, body)
        else:
            self._body.append(piece)
            asyncio.get_running_loop().call_soon(self.render_next)


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
