"""The console as people see it: in a browser, live, light and dark, by keyboard and on a phone."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import kohort
from kohort.client.consumer import Consumer
from kohort.console.address import group_path, topic_path
from kohort.console.server import Console
from kohort.types import Topic
from tests.apache.cluster import Kafka
from tests.client.clusters import SETTINGS, Cluster, Written, at
from tests.console.browsing import DESKTOP, LONG_MS, PHONE, browser, open_page
from tests.console.visiting import LONG_S, Visitor
from tests.waiting import wait_until

__all__ = ["browser"]

MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@contextmanager
def member(node: Cluster, topic: Topic, group: str, name: str) -> Iterator[Consumer]:
    options = {"group_id": group, "client_id": name, "enable_auto_commit": False}
    with node.consumer(**options) as consumer:
        consumer.subscribe([topic])
        wait_until(lambda: (consumer.poll(20), consumer.assignment())[1], LONG_S, "a share")
        yield consumer


def idle_group(node: Cluster, url: str, committed: int = 3) -> tuple[str, Topic]:
    topic, group = node.create_topic(), node.name_group()
    node.produce(topic, 10)
    with node.consumer(group_id=group, enable_auto_commit=False) as consumer:
        consumer.commit({at(topic): committed})
    Visitor(url).wait_json(group_path(group), lambda told: told["group"]["readings"])
    return group, topic


def is_live(page: Page) -> None:
    expect(page.locator("#pulse")).to_have_attribute("data-state", "live", timeout=LONG_MS)


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_opens_and_fits(
    browser: Browser, node: Cluster, console: Console, viewport: dict[str, int], scheme: str
) -> None:
    group, topic = idle_group(node, console.url)
    with member(node, topic, group, "a-client"):
        told = Visitor(console.url).wait_json(
            group_path(group), lambda told: told["group"]["rebalances"]
        )
    key = told["group"]["rebalances"][0]["key"]
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
            ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert ground == ("rgb(21, 24, 27)" if scheme == "dark" else "rgb(250, 249, 246)")


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
            expect(page.locator("#legend")).to_contain_text("the-newcomer", timeout=LONG_MS)
            expect(page.locator("#timeline path.mark.came")).to_have_count(1, timeout=LONG_MS)
            expect(page.locator("#timeline path.p0")).to_have_count(1)
            expect(page.locator(".node.on")).to_have_text("Stable", timeout=LONG_MS)
            expect(page.locator("[data-live=members]")).to_contain_text("the-newcomer")
            expect(page.locator("[data-live=rebalances] tbody tr")).to_have_count(1)

        expect(page.locator(".node.on")).to_have_text("Empty", timeout=LONG_MS)
        assert page.evaluate("window.isTheSamePage")


def test_the_timeline_is_walked_by_keyboard(
    browser: Browser, node: Cluster, console: Console
) -> None:
    group, topic = idle_group(node, console.url)
    with member(node, topic, group, "first"):
        Visitor(console.url).wait_json(
            group_path(group), lambda told: any(r["trigger"] for r in told["group"]["rebalances"])
        )
    with open_page(browser) as page:
        page.goto(f"{console.url}{group_path(group)}")

        page.locator("#timeline svg").first.focus()
        page.keyboard.press("Home")
        expect(page.locator("#tale")).to_contain_text("a new member joined: first")
        page.keyboard.press("Enter")

        expect(page.locator("h1")).to_contain_text("Rebalance to generation 1")


def test_a_dry_run_shows_and_the_deed_changes_offsets(
    browser: Browser, node: Cluster, console: Console
) -> None:
    group, _ = idle_group(node, console.url, committed=3)
    with open_page(browser) as page:
        page.goto(f"{console.url}{group_path(group)}")
        page.get_by_role("link", name="Reset offsets").click()
        page.get_by_label("to the beginning").check()
        page.get_by_role("button", name="Show what would change").click()
        expect(page.locator(".story")).to_contain_text("3 records would be read again")
        shown = Visitor(console.url).json(group_path(group))

        page.get_by_role("button", name="Reset 1 offset").click()
        expect(page.locator("h1")).to_have_text("The offsets are reset")

    assert shown["group"]["readings"][0]["committed"] == 3
    Visitor(console.url).wait_json(
        group_path(group), lambda told: told["group"]["readings"][0]["committed"] == 0
    )


def test_a_reset_of_a_group_with_members_is_refused_in_words(
    browser: Browser, node: Cluster, console: Console
) -> None:
    group, topic = idle_group(node, console.url)
    with (
        member(node, topic, group, "busy"),
        open_page(browser, refusal="status of 409") as page,
    ):
        page.goto(f"{console.url}{group_path(group)}/reset")
        expect(page.locator("main .banner")).to_contain_text("has 1 member now")
        with page.expect_response(lambda each: each.request.method == "POST") as answered:
            page.get_by_role("button", name="Show what would change").click()
        assert answered.value.status == 409
        expect(page.locator(".story")).to_contain_text("has 1 member")


def test_dark_is_chosen_and_remembered(browser: Browser, console: Console) -> None:
    with open_page(browser, color_scheme="light") as page:
        page.goto(f"{console.url}/overview")
        page.locator("#theme").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")

        page.goto(f"{console.url}/groups")

        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == "rgb(21, 24, 27)"


def test_pages_and_search_are_reached_by_keys(
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


def test_names_with_markup_in_them_stay_text_when_they_come_live(
    browser: Browser, node: Cluster, console: Console
) -> None:
    group, topic = f"{MARKUP}{node.name_group()}", node.create_topic()
    node.produce(topic, [Written(key=MARKUP.encode(), value=MARKUP.encode())])
    with open_page(browser) as page:
        page.goto(f"{console.url}/overview")
        is_live(page)
        with member(node, topic, group, MARKUP):
            # It comes by the feed.
            expect(page.get_by_role("link", name=group).first).to_be_visible(timeout=LONG_MS)
            page.goto(f"{console.url}{group_path(group)}")
            expect(page.locator("#legend")).to_contain_text(MARKUP, timeout=LONG_MS)
            page.locator("#timeline svg").first.focus()
            page.keyboard.press("End")
            expect(page.locator("#tale")).to_contain_text("generation")
            expect(page.locator("h1")).to_contain_text(group)
            assert page.locator("main img").count() == 0
            page.goto(f"{console.url}{topic_path(topic)}/records")
            expect(page.locator("pre.bytes").first).to_have_text(MARKUP)


def test_a_page_says_that_the_cluster_is_gone_and_recovers(
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

        expect(page.locator("#health")).to_contain_text("does not answer", timeout=LONG_MS)
        node = kohort.Node(data=tmp_path, settings=SETTINGS, port=port).start()

        expect(page.locator("#health")).not_to_contain_text("does not answer", timeout=LONG_MS)
        page.close()
    node.stop()


def test_a_page_says_that_the_console_is_gone_and_finds_it_again(
    browser: Browser, node: Cluster
) -> None:
    console = Console(node.bootstrap_servers, listen="127.0.0.1:0").start()
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{console.url}/overview")
    is_live(page)

    console.stop()
    expect(page.locator("#pulse")).to_have_attribute("data-state", "lost", timeout=LONG_MS)
    again = Console(node.bootstrap_servers, listen=console.url.removeprefix("http://")).start()
    is_live(page)

    context.close()
    again.stop()


def test_on_apache_kafka_pages_say_what_cannot_be_known(
    browser: Browser, apache_kafka: Kafka
) -> None:
    kafka = Cluster(bootstrap_servers=apache_kafka.bootstrap_servers)
    with Console(kafka.bootstrap_servers, listen="127.0.0.1:0") as console:
        group, topic = idle_group(kafka, console.url)
        with open_page(browser) as page, member(kafka, topic, group, "stock"):
            page.goto(f"{console.url}{group_path(group)}")
            expect(page.locator("#legend")).to_contain_text("stock", timeout=LONG_MS)
            expect(page.locator("main")).to_contain_text("writes no events of its groups")
            expect(page.locator("[data-live=rebalances]")).to_contain_text("not known here")
            expect(page.locator("[data-live=offsets]")).to_contain_text(topic)
            for path in ("/overview", "/groups", "/topics", topic_path(topic)):
                response = page.goto(f"{console.url}{path}")
                assert response is not None
                assert response.status == 200
            page.goto(f"{console.url}{topic_path(topic)}/records?count=5")
            expect(page.locator("table.records tbody tr")).to_have_count(5)
