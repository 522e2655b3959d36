"""Pictures of the console for documents: a node with some life in it, and every page of it.

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
from tests.client.clusters import SETTINGS, Cluster, at
from tests.console.browsing import DESKTOP, PHONE, open_browser
from tests.console.visiting import Visitor

TOPICS = {"orders": 6, "refunds": 3, "clicks": 8}

SHOWN = {
    *("overview-light", "overview-dark", "group-light", "group-dark"),
    *("rebalance-light", "group-phone"),
}
"""What documents show."""

Doing = Callable[[threading.Event], None]


def produce(node: Cluster, topic: str, per_second: int) -> Doing:
    def work(ending: threading.Event) -> None:
        producer = Producer({"bootstrap.servers": node.bootstrap_servers, "log_level": 0})
        number = 0
        while not ending.wait(0.1):
            for _ in range(per_second // 10):
                value = f'{{"{topic[:-1]}": {number}, "total": {number % 97}.50}}'
                producer.produce(topic, key=f"customer-{number % 40}", value=value)
                number += 1
            producer.poll(0)
        producer.flush(5)

    return work


def member(node: Cluster, group: str, topics: Sequence[str], name: str, **options: Any) -> Doing:
    """Joins, and stays until it is told to end; `lives_s` makes it come and go."""
    lives_s, pause_s = options.pop("lives_s", None), options.pop("pause_s", 0.0)
    begins_s = options.pop("begins_s", 0.0)

    def work(ending: threading.Event) -> None:
        ending.wait(begins_s)
        while not ending.is_set():
            dies = time.monotonic() + (lives_s or 1e9)
            given = {"group_id": group, "client_id": name, "auto_commit_interval_ms": 1000}
            with node.consumer(**given, **options) as consumer:
                consumer.subscribe(topics)
                while not ending.is_set() and time.monotonic() < dies:
                    consumer.poll(100)
                    ending.wait(pause_s)
            ending.wait(2.0)

    return work


def crashing(node: Cluster, group: str, topics: Sequence[str], name: str) -> Doing:
    """Ends as a killed process does, again and again: its group has to notice."""

    def work(ending: threading.Event) -> None:
        chance = random.Random(name)  # noqa: S311  # no secret
        while not ending.is_set():
            consumer = node.open_consumer(group_id=group, client_id=name)
            consumer.subscribe(topics)
            dies = time.monotonic() + chance.uniform(20, 30)
            while not ending.is_set() and time.monotonic() < dies:
                consumer.poll(100)
            consumer.abandon()
            ending.wait(4.0)

    return work


def life(node: Cluster) -> list[Doing]:
    fleet = [
        member(node, "billing", ["orders", "refunds"], f"billing-{n}", begins_s=n * 0.5)
        for n in range(3)
    ]
    deploy = [
        member(node, "shipping", ["orders"], f"shipping-{n}", begins_s=5 + n * 9, lives_s=38)
        for n in range(3)
    ]
    return [
        *(produce(node, topic, rate) for topic, rate in (("orders", 60), ("refunds", 20))),
        produce(node, "clicks", 200),
        *fleet,
        *deploy,
        crashing(node, "billing", ["orders", "refunds"], "billing-spot"),
        member(node, "search-index", ["clicks"], "indexer-0"),
        member(node, "search-index", ["clicks"], "indexer-1"),
        member(node, "fraud-model", ["clicks"], "scorer-0", max_poll_records=10, pause_s=0.2),
    ]


@contextmanager
def lively(node: Cluster) -> Iterator[None]:
    ending = threading.Event()
    threads = [threading.Thread(target=each, args=(ending,)) for each in life(node)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ending.set()
        for thread in threads:
            thread.join()


def pictures(url: str) -> dict[str, str]:
    told = Visitor(url).json("/groups/billing")["group"]["rebalances"]
    expired = [each["key"] for each in told if each["trigger"] == "session-expired"]
    key = (expired or [each["key"] for each in told])[-1]
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
    looks = {
        "light": {"viewport": DESKTOP, "color_scheme": "light"},
        "dark": {"viewport": DESKTOP, "color_scheme": "dark"},
        "phone": {"viewport": PHONE, "color_scheme": "light", "device_scale_factor": 2},
    }
    for look, options in looks.items():
        context = browser.new_context(**options)  # type: ignore[arg-type]  # they are its options
        page = context.new_page()
        for name, path in pictures(url).items():
            if not is_all and f"{name}-{look}" not in SHOWN:
                continue
            page.goto(f"{url}{path}")
            page.locator("#pulse[data-state=live]").wait_for()
            page.screenshot(path=to / f"console-{name}-{look}.png")
        context.close()


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--to", type=Path, default=Path("docs/pictures"))
    asked.add_argument("--seconds", type=float, default=150.0, help="how long life goes on before")
    asked.add_argument("--all", action="store_true", help="every page in every look")
    given = asked.parse_args()
    given.to.mkdir(parents=True, exist_ok=True)
    with kohort.Node(settings=SETTINGS) as started:
        node = Cluster(bootstrap_servers=started.bootstrap_servers)
        for topic, partitions in TOPICS.items():
            node.create_topic(partitions, topic)
        with (
            Console(node.bootstrap_servers, listen="127.0.0.1:0") as console,
            lively(node),
            open_browser() as browser,
        ):
            with node.consumer(group_id="nightly-report") as consumer:
                consumer.commit({at(Topic("orders")): 5})
            threading.Event().wait(given.seconds)
            take(browser, console.url, given.to, is_all=given.all)


if __name__ == "__main__":
    main()
