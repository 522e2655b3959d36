"""Parses the /metrics page."""

import http.client
from urllib.parse import urlsplit

from prometheus_client.parser import text_string_to_metric_families

from kohort.node.metrics_http import MetricsServer
from kohort.settings.hosts import read_allowed_hosts
from tests.node.broker_harness import BrokerHarness

Page = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def parse(text: str) -> Page:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def page_of(harness: BrokerHarness) -> Page:
    return parse(b"".join(MetricsServer(harness.broker, read_allowed_hosts(())).pieces()).decode())


def metric_value(page: Page, name: str, **labels: str) -> float:
    return page[name, tuple(sorted(labels.items()))]


def labels_of(page: Page, name: str, label: str) -> list[str]:
    """The values of one label of a metric, in page order."""
    return list(dict.fromkeys(dict(labels)[label] for each, labels in page if each == name))


def read(url: str) -> str:
    """Fetch and parse the page over HTTP."""
    parts = urlsplit(url)
    asking = http.client.HTTPConnection(parts.netloc, timeout=10)
    try:
        asking.request("GET", parts.path)
        answer = asking.getresponse()
        assert (answer.status, answer.headers["Content-Type"]) == (
            200,
            "text/plain; version=0.0.4; charset=utf-8",
        )
        return answer.read().decode()
    finally:
        asking.close()
