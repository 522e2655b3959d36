"""The console in a browser: live updates, themes, keyboard and phone width."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import kohort
from kohort.client.consumer import Consumer
from kohort.console.server import Console
from kohort.console.url_encoding import group_path, topic_path
from kohort.types import Topic
from tests.apache.shared import SharedKafka
from tests.client.node_cluster import SETTINGS, Cluster, ProducedRecord, at
from tests.console.browser import DESKTOP, PHONE, TIMEOUT_MS, browser, open_page
from tests.console.http_client import TIMEOUT_S, HttpClient
from tests.wait import wait_until

__all__ = ["browser"]

MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@contextmanager
def member(node: Cluster, topic: Topic, group: str, name: str) -> Iterator[Consumer]:
    options = {"group_id": group, "client_id": name, "enable_auto_commit": False}
    with node.consumer(**options) as consumer:
        consumer.subscribe([topic])
        wait_until(
            lambda: (consumer.poll(20), consumer.assignment())[1], TIMEOUT_S, "an assignment"
        )
        yield consumer


def idle_group(node: Cluster, url: str, committed: int = 3) -> tuple[str, Topic]:
    topic, group = node.create_topic(), node.name_group()
    node.produce(topic, 10)
    with node.consumer(group_id=group, enable_auto_commit=False) as consumer:
        consumer.commit({at(topic): committed})
    HttpClient(url).wait_json(group_path(group), lambda data: data["group"]["offsets"])
    return group, topic


def is_live(page: Page) -> None:
    expect(page.locator("#connection")).to_have_attribute("data-state", "live", timeout=TIMEOUT_MS)


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_opens_and_fits_the_viewport(
    browser: Browser, node: Cluster, console: Console, viewport: dict[str, int], scheme: str
) -> None:
    group, topic = idle_group(node, console.url)
    with member(node, topic, group, "a-client"):
        data = HttpClient(console.url).wait_json(
            group_path(group), lambda data: data["group"]["rebalances"]
        )
    key = data["group"]["rebalances"][0]["key"]
    paths = (
        "/overview",
        "/groups",
        group_path(group),
        f"{group_path(group)}/rebalances/{key}",
        f"{group_path(group)}/reset",
        "/topics",
        topic_path(topic),
        f"{topic_path(topic)}/records",
    )

    with open_page(browser, viewport=viewport, color_scheme=scheme) as page:
        for path in paths:
            response = page.goto(f"{console.url}{path}")
            assert response is not None
            assert response.status == 200, path
            is_live(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"], path
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert background == ("rgb(21, 24, 27)" if scheme == "dark" else "rgb(250, 249, 246)")


def test_a_join_appears_in_the_timeline_without_a_reload(
    browser: Browser, node: Cluster, console: Console
) -> None:
    group, topic = idle_group(node, console.url)
    with open_page(browser) as page:
        page.goto(f"{console.url}{group_path(group)}")
        is_live(page)
        page.evaluate("window.isTheSamePage = true")
        assert page.locator("#timeline .mark").count() == 0

        with member(node, topic, group, "the-newcomer"):
            expect(page.locator("#legend")).to_contain_text("the-newcomer", timeout=TIMEOUT_MS)
            expect(page.locator("#timeline path.mark.joined")).to_have_count(1, timeout=TIMEOUT_MS)
            expect(page.locator("#timeline path.p0")).to_have_count(1)
            expect(page.locator(".node.on")).to_have_text("Stable", timeout=TIMEOUT_MS)
            expect(page.locator("[data-live=members]")).to_contain_text("the-newcomer")
            expect(page.locator("[data-live=rebalances] tbody tr")).to_have_count(1)

        expect(page.locator(".node.on")).to_have_text("Empty", timeout=TIMEOUT_MS)
        assert page.evaluate("window.isTheSamePage")


def test_the_timeline_supports_the_keyboard(
    browser: Browser, node: Cluster, console: Console
) -> None:
    group, topic = idle_group(node, console.url)
    with member(node, topic, group, "first"):
        HttpClient(console.url).wait_json(
            group_path(group), lambda data: any(r["trigger"] for r in data["group"]["rebalances"])
        )
    with open_page(browser) as page:
        page.goto(f"{console.url}{group_path(group)}")

        page.locator("#timeline svg").first.focus()
        page.keyboard.press("Home")
        expect(page.locator("#selected")).to_contain_text("first joined")
        page.keyboard.press("Enter")

        expect(page.locator("h1")).to_contain_text("Rebalance to generation 1")


def test_a_dry_run_and_a_reset_of_offsets(
    browser: Browser, node: Cluster, console: Console
) -> None:
    group, _ = idle_group(node, console.url, committed=3)
    with open_page(browser) as page:
        page.goto(f"{console.url}{group_path(group)}")
        page.get_by_role("link", name="Reset offsets").click()
        page.get_by_label("to the log start").check()
        page.get_by_role("button", name="Show what would change").click()
        expect(page.locator(".lead")).to_contain_text("3 records would be read again")
        shown = HttpClient(console.url).json(group_path(group))

        page.get_by_role("button", name="Reset 1 offset").click()
        expect(page.locator("h1")).to_have_text("Offsets were reset")

    assert shown["group"]["offsets"][0]["committed"] == 3
    HttpClient(console.url).wait_json(
        group_path(group), lambda data: data["group"]["offsets"][0]["committed"] == 0
    )


def test_a_reset_of_a_group_with_members_is_rejected(
    browser: Browser, node: Cluster, console: Console
) -> None:
    group, topic = idle_group(node, console.url)
    with (
        member(node, topic, group, "busy"),
        open_page(browser, expected_error="status of 409") as page,
    ):
        page.goto(f"{console.url}{group_path(group)}/reset")
        expect(page.locator("main .banner")).to_contain_text("has 1 member")
        with page.expect_response(lambda each: each.request.method == "POST") as posted:
            page.get_by_role("button", name="Show what would change").click()
        assert posted.value.status == 409
        expect(page.locator(".lead")).to_contain_text("has 1 member")


def test_the_theme_is_remembered(browser: Browser, console: Console) -> None:
    with open_page(browser, color_scheme="light") as page:
        page.goto(f"{console.url}/overview")
        page.locator("#theme").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")

        page.goto(f"{console.url}/groups")

        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == "rgb(21, 24, 27)"


def test_keyboard_shortcuts_open_pages_and_search(
    browser: Browser, node: Cluster, console: Console
) -> None:
    group, _ = idle_group(node, console.url)
    with open_page(browser) as page:
        page.goto(f"{console.url}/topics")
        page.keyboard.press("g")
        page.wait_for_url("**/groups")

        page.keyboard.press("/")
        page.keyboard.type(group)
        page.keyboard.press("Enter")
        page.wait_for_url("**/groups?search=*")

        expect(page.locator(".shown")).to_contain_text("1 of ")
        page.get_by_role("link", name=group).click()
        expect(page.locator("h1")).to_contain_text(group)


def test_names_with_markup_are_escaped_in_live_updates(
    browser: Browser, node: Cluster, console: Console
) -> None:
    group, topic = f"{MARKUP}{node.name_group()}", node.create_topic()
    node.produce(topic, [ProducedRecord(key=MARKUP.encode(), value=MARKUP.encode())])
    with open_page(browser) as page:
        page.goto(f"{console.url}/overview")
        is_live(page)
        with member(node, topic, group, MARKUP):
            # From the feed.
            expect(page.get_by_role("link", name=group).first).to_be_visible(timeout=TIMEOUT_MS)
            page.goto(f"{console.url}{group_path(group)}")
            expect(page.locator("#legend")).to_contain_text(MARKUP, timeout=TIMEOUT_MS)
            page.locator("#timeline svg").first.focus()
            page.keyboard.press("End")
            expect(page.locator("#selected")).to_contain_text("generation")
            expect(page.locator("h1")).to_contain_text(group)
            assert page.locator("main img").count() == 0
            page.goto(f"{console.url}{topic_path(topic)}/records")
            expect(page.locator("pre.bytes").first).to_have_text(MARKUP)


def test_a_page_shows_that_the_cluster_is_unreachable_and_recovers(
    browser: Browser, tmp_path: Path
) -> None:
    node = kohort.Node(data=tmp_path, settings=SETTINGS).start()
    port = int(node.bootstrap_servers.rpartition(":")[2])
    with (
        Console(node.bootstrap_servers, listen="127.0.0.1:0") as console,
        open_page(browser) as page,
    ):
        page.goto(f"{console.url}/overview")
        is_live(page)
        node.stop()

        expect(page.locator("#health")).to_contain_text("Cluster unreachable", timeout=TIMEOUT_MS)
        node = kohort.Node(data=tmp_path, settings=SETTINGS, port=port).start()

        expect(page.locator("#health")).not_to_contain_text(
            "Cluster unreachable", timeout=TIMEOUT_MS
        )
        page.close()
    node.stop()


def test_a_page_shows_that_the_console_is_unreachable_and_reconnects(
    browser: Browser, node: Cluster
) -> None:
    console = Console(node.bootstrap_servers, listen="127.0.0.1:0").start()
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{console.url}/overview")
    is_live(page)

    console.stop()
    expect(page.locator("#connection")).to_have_attribute("data-state", "lost", timeout=TIMEOUT_MS)
    again = Console(node.bootstrap_servers, listen=console.url.removeprefix("http://")).start()
    is_live(page)

    context.close()
    again.stop()


def test_on_apache_kafka_pages_show_what_is_not_recorded(
    browser: Browser, apache_kafka: SharedKafka
) -> None:
    kafka = Cluster(bootstrap_servers=apache_kafka.bootstrap_servers)
    with Console(kafka.bootstrap_servers, listen="127.0.0.1:0") as console:
        group, topic = idle_group(kafka, console.url)
        with open_page(browser) as page, member(kafka, topic, group, "stock"):
            page.goto(f"{console.url}{group_path(group)}")
            expect(page.locator("#legend")).to_contain_text("stock", timeout=TIMEOUT_MS)
            expect(page.locator("main")).to_contain_text("has no topic __kohort_events")
            expect(page.locator("[data-live=rebalances]")).to_contain_text("not recorded")
            expect(page.locator("[data-live=offsets]")).to_contain_text(topic)
            for path in ("/overview", "/groups", "/topics", topic_path(topic)):
                response = page.goto(f"{console.url}{path}")
                assert response is not None
                assert response.status == 200
            page.goto(f"{console.url}{topic_path(topic)}/records?count=5")
            expect(page.locator("table.records tbody tr")).to_have_count(5)
