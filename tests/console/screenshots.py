"""Takes screenshots of the console for documents: starts a node with active groups first.

python -m tests.console.screenshots [--to docs/pictures] [--seconds 150] [--all]
"""

import argparse
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from playwright.sync_api import Browser

import kohort
from kohort.console.server import Console
from kohort.types import Topic
from tests.client.node_cluster import SETTINGS, Cluster, at
from tests.console.browser import DESKTOP, PHONE, open_browser
from tests.console.http_client import HttpClient

TOPICS = {"orders": 6, "refunds": 3, "clicks": 8}

DOCUMENTED = {
    *("overview-light", "overview-dark", "group-light", "group-dark"),
    *("rebalance-light", "group-phone"),
}
"""The screenshots in documents."""

Activity = Callable[[threading.Event], None]


def produce(node: Cluster, topic: str, per_second: int) -> Activity:
    def work(stopping: threading.Event) -> None:
        producer = Producer({"bootstrap.servers": node.bootstrap_servers, "log_level": 0})
        number = 0
        while not stopping.wait(0.1):
            for _ in range(per_second // 10):
                value = f'{{"{topic[:-1]}": {number}, "total": {number % 97}.50}}'
                producer.produce(topic, key=f"customer-{number % 40}", value=value)
                number += 1
            producer.poll(0)
        producer.flush(5)

    return work


def member(node: Cluster, group: str, topics: Sequence[str], name: str, **options: Any) -> Activity:
    """Joins and stays; with `lives_s` it leaves and rejoins periodically."""
    lives_s, pause_s = options.pop("lives_s", None), options.pop("pause_s", 0.0)
    start_s = options.pop("start_s", 0.0)

    def work(stopping: threading.Event) -> None:
        stopping.wait(start_s)
        while not stopping.is_set():
            leave_at = time.monotonic() + (lives_s or 1e9)
            args = {"group_id": group, "client_id": name, "auto_commit_interval_ms": 1000}
            with node.consumer(**args, **options) as consumer:
                consumer.subscribe(topics)
                while not stopping.is_set() and time.monotonic() < leave_at:
                    consumer.poll(100)
                    stopping.wait(pause_s)
            stopping.wait(2.0)

    return work


def crashing_member(node: Cluster, group: str, topics: Sequence[str], name: str) -> Activity:
    """Stops like a killed process again and again, so that its session expires."""

    def work(stopping: threading.Event) -> None:
        rng = random.Random(name)  # noqa: S311  # not for secrets
        while not stopping.is_set():
            consumer = node.open_consumer(group_id=group, client_id=name)
            consumer.subscribe(topics)
            leave_at = time.monotonic() + rng.uniform(20, 30)
            while not stopping.is_set() and time.monotonic() < leave_at:
                consumer.poll(100)
            consumer.abandon()
            stopping.wait(4.0)

    return work


def activities(node: Cluster) -> list[Activity]:
    stable = [
        member(node, "billing", ["orders", "refunds"], f"billing-{n}", start_s=n * 0.5)
        for n in range(3)
    ]
    restarting = [
        member(node, "shipping", ["orders"], f"shipping-{n}", start_s=5 + n * 9, lives_s=38)
        for n in range(3)
    ]
    return [
        *(produce(node, topic, rate) for topic, rate in (("orders", 60), ("refunds", 20))),
        produce(node, "clicks", 200),
        *stable,
        *restarting,
        crashing_member(node, "billing", ["orders", "refunds"], "billing-spot"),
        member(node, "search-index", ["clicks"], "indexer-0"),
        member(node, "search-index", ["clicks"], "indexer-1"),
        member(node, "fraud-model", ["clicks"], "scorer-0", max_poll_records=10, pause_s=0.2),
    ]


@contextmanager
def running_activities(node: Cluster) -> Iterator[None]:
    stopping = threading.Event()
    threads = [threading.Thread(target=each, args=(stopping,)) for each in activities(node)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def pages(url: str) -> dict[str, str]:
    data = HttpClient(url).json("/groups/billing")["group"]["rebalances"]
    expired = [each["key"] for each in data if each["trigger"] == "session-expired"]
    key = (expired or [each["key"] for each in data])[-1]
    return {
        "overview": "/overview",
        "groups": "/groups",
        "group": "/groups/billing",
        "rebalance": f"/groups/billing/rebalances/{key}",
        "reset": "/groups/nightly-report/reset",
        "topics": "/topics",
        "topic": "/topics/orders",
        "records": "/topics/orders/records?count=8",
    }


def take(browser: Browser, url: str, to: Path, *, is_all: bool) -> None:
    variants = {
        "light": {"viewport": DESKTOP, "color_scheme": "light"},
        "dark": {"viewport": DESKTOP, "color_scheme": "dark"},
        "phone": {"viewport": PHONE, "color_scheme": "light", "device_scale_factor": 2},
    }
    for variant, options in variants.items():
        context = browser.new_context(**options)  # type: ignore[arg-type]  # valid options
        page = context.new_page()
        for name, path in pages(url).items():
            if not is_all and f"{name}-{variant}" not in DOCUMENTED:
                continue
            page.goto(f"{url}{path}")
            page.locator("#connection[data-state=live]").wait_for()
            page.screenshot(path=to / f"console-{name}-{variant}.png")
        context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=Path("docs/pictures"))
    parser.add_argument("--seconds", type=float, default=150.0, help="time before the screenshots")
    parser.add_argument("--all", action="store_true", help="take every page in every variant")
    args = parser.parse_args()
    args.to.mkdir(parents=True, exist_ok=True)
    with kohort.Node(settings=SETTINGS) as started:
        node = Cluster(bootstrap_servers=started.bootstrap_servers)
        for topic, partitions in TOPICS.items():
            node.create_topic(partitions, topic)
        with (
            Console(node.bootstrap_servers, listen="127.0.0.1:0") as console,
            running_activities(node),
            open_browser() as browser,
        ):
            with node.consumer(group_id="nightly-report") as consumer:
                consumer.commit({at(Topic("orders")): 5})
            threading.Event().wait(args.seconds)
            take(browser, console.url, args.to, is_all=args.all)


if __name__ == "__main__":
    main()
