"""Every page over HTTP: HTML, JSON version, feed and errors."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from itertools import takewhile
from typing import Any

import pytest

from kohort.client.consumer import Consumer
from kohort.console.app import FORM_BYTES_MAX, PAGES
from kohort.console.server import Console
from kohort.console.url_encoding import group_path, topic_path
from kohort.types import Topic
from tests.client.node_cluster import Cluster, ProducedRecord, at
from tests.console.http_client import TIMEOUT_S, HttpClient
from tests.wait import wait_until

MARKUP = "<img src=x onerror=alert(1)>&'\"</script>"


class PageParser(HTMLParser):
    """Tags and attributes of a page; `scripts` are inline scripts that could run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str]] = set()
        self.scripts: list[dict[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {(name, each or "") for name, each in attrs}
        given = dict(attrs)
        if tag == "script" and "src" not in given and given.get("type") != "application/json":
            self.scripts.append(given)


@contextmanager
def member(node: Cluster, topic: Topic, group: str, name: str = "till-1") -> Iterator[Consumer]:
    """A group member with an assignment and without committed offsets."""
    options = {"group_id": group, "client_id": name, "enable_auto_commit": False}
    with node.consumer(**options) as consumer:
        consumer.subscribe([topic])
        wait_until(
            lambda: (consumer.poll(20), consumer.assignment())[1], TIMEOUT_S, "an assignment"
        )
        yield consumer


def idle_group(node: Cluster, client: HttpClient, committed: int = 3) -> tuple[str, Topic]:
    """A group without members, with a committed offset in a topic of ten records."""
    topic, group = node.create_topic(), node.name_group()
    node.produce(topic, 10)
    with node.consumer(group_id=group, enable_auto_commit=False) as consumer:
        consumer.commit({at(topic): committed})
    client.wait_json(group_path(group), lambda data: data["group"]["offsets"])
    return group, topic


def _is_exact(view: Any) -> bool:
    """All rebalances come from events."""
    data = view["rebalances"]
    return bool(data) and all(each["is_exact"] and each["ending"] for each in data)


def test_the_overview_has_all_groups(node: Cluster, client: HttpClient) -> None:
    group, _ = idle_group(node, client)

    page, data = client.get("/overview"), client.json("/overview")

    assert page.status == 200
    assert data["headline"] in page.text
    assert data["overview"]["groups"] >= 1
    assert data["cluster"] == node.bootstrap_servers
    assert data["health"]["is_reachable"]
    assert client.get("/", follow="no").status == 307
    assert client.json(f"/groups?search={group}")["page"]["found"] == 1


def test_a_group_page_has_members_offsets_and_rebalances(node: Cluster, client: HttpClient) -> None:
    topic, group = node.create_topic(2), node.name_group()
    node.produce(topic, 10)

    with member(node, topic, group) as consumer:
        consumer.commit({at(topic): 4})
        data = client.wait_json(
            group_path(group),
            lambda data: data["group"]["row"]["lag"] == 6 and _is_exact(data["group"]),
        )
        page = client.get(group_path(group))

    view = data["group"]
    assert view["row"]["state"] == "Stable"
    assert view["members"][0]["party"]["client_id"] == "till-1"
    assert view["rebalances"][-1]["trigger"] == "member-joined"
    assert 'class="node on good"' in page.text
    assert "till-1" in page.text


def test_the_page_of_a_rebalance(node: Cluster, client: HttpClient) -> None:
    topic, group = node.create_topic(2), node.name_group()
    with member(node, topic, group):
        data = client.wait_json(group_path(group), lambda data: _is_exact(data["group"]))
    key = data["group"]["rebalances"][0]["key"]

    page = client.get(f"{group_path(group)}/rebalances/{key}")
    as_json = client.json(f"{group_path(group)}/rebalances/{key}")

    assert "Cause: till-1 joined." in page.text
    assert as_json["rebalance"]["participants"][0]["got"] == [
        {"topic": topic, "partition": 0},
        {"topic": topic, "partition": 1},
    ]
    assert len(as_json["moves"]) == 2


def test_groups_are_searched_sorted_and_paged(node: Cluster, client: HttpClient) -> None:
    name = node.name_group()
    topic = node.create_topic()
    for number in range(3):
        with node.consumer(group_id=f"{name}-{number}", enable_auto_commit=False) as consumer:
            consumer.commit({at(topic): number})
    client.wait_json(f"/groups?search={name}", lambda data: data["page"]["found"] == 3)

    first = client.json(f"/groups?search={name.upper()}&sort=group&per_page=2")
    rest = client.json(f"/groups?search={name}&sort=group&order=down&per_page=2&page=2")
    page = client.get(f"/groups?search={name}&sort=group")

    assert [each["group_id"] for each in first["page"]["rows"]] == [f"{name}-0", f"{name}-1"]
    assert [each["group_id"] for each in rest["page"]["rows"]] == [f"{name}-0"]
    assert 'aria-sort="ascending"' in page.text


@pytest.mark.parametrize(
    "query", ["sort=beauty", "status=unknown", "order=sideways", "page=first", "per_page=x"]
)
def test_an_invalid_query_is_rejected(client: HttpClient, query: str) -> None:
    response = client.get(f"/groups.json?{query}")

    assert response.status == 400
    assert response.json["error"].endswith(".")


def test_topic_pages_have_partitions_sizes_and_groups(node: Cluster, client: HttpClient) -> None:
    group, topic = idle_group(node, client)

    listed = client.json(f"/topics?search={topic}")
    data = client.json(topic_path(topic))
    internal = client.json("/topics?search=__consumer_offsets&internal=yes")
    hidden = client.json("/topics?search=__consumer_offsets")

    assert (listed["rows"][0]["partitions"], listed["rows"][0]["readers"]) == (1, 1)
    assert listed["rows"][0]["size"] > 0
    assert data["readers"] == [group]
    assert (data["partitions"][0]["start"], data["partitions"][0]["end"]) == (0, 10)
    assert (internal["found"], hidden["found"]) == (1, 0)


def test_records_are_shown_from_the_end_or_from_an_offset(
    node: Cluster, client: HttpClient
) -> None:
    topic = node.create_topic()
    node.produce(topic, 10)
    path = f"{topic_path(topic)}/records"

    last = client.json(f"{path}?count=3")
    some = client.json(f"{path}?offset=4&count=2")
    beyond = client.json(f"{path}?offset=99")

    assert [each["offset"] for each in last["page"]["records"]] == [7, 8, 9]
    assert [each["value"]["text"] for each in some["page"]["records"]] == ["4", "5"]
    assert beyond["page"]["records"] == []
    assert f"{path}?partition=0&amp;count=3&amp;offset=4" in client.get(f"{path}?count=3").text


def test_records_are_escaped(node: Cluster, client: HttpClient) -> None:
    topic = node.create_topic()
    records = [
        ProducedRecord(key=None, value=None, headers=[(MARKUP, b"\x00\xff")]),
        ProducedRecord(key=MARKUP.encode(), value=MARKUP.encode()),
    ]
    node.produce(topic, records)

    page = client.get(f"{topic_path(topic)}/records")
    first, second = client.json(f"{topic_path(topic)}/records")["page"]["records"]

    assert "<img" not in page.text
    assert "&lt;img src=x" in page.text
    assert (first["key"], first["value"]) == (None, None)
    assert first["headers"] == [
        [MARKUP, {"text": "00 ff", "is_text": False, "size": 2, "is_cut": False}]
    ]
    assert second["value"]["text"] == MARKUP


def test_names_with_markup_are_escaped(node: Cluster, client: HttpClient) -> None:
    group = f"{MARKUP}{node.name_group()}"
    topic = node.create_topic()

    with member(node, topic, group, name=MARKUP) as consumer:
        consumer.commit({at(topic): 0})
        client.wait_json(
            group_path(group),
            lambda data: data["group"]["ownership"] and data["group"]["offsets"],
        )
        pages = [client.get(group_path(group)), client.get("/groups"), client.get("/overview")]
        with client.feed(group_path(group)) as feed:
            parts = list(takewhile(lambda each: each[0] != "chart", feed))

    for page in pages:
        assert page.status == 200
        assert "<img" not in page.text
        assert "alert(1)&gt;" in page.text
    assert {kind for kind, _ in parts} == {"part", "health"}
    assert not any("<img" in content["html"] for _, content in parts)


@pytest.mark.parametrize(
    "path", ["/nonsense", "/groups/no-such-group", "/groups/~zz", "/topics/none", "/findings", "//"]
)
def test_not_found_as_html_and_json(client: HttpClient, path: str) -> None:
    page, as_json = client.get(path), client.get(f"{path}.json")

    assert (page.status, as_json.status) == (404, 404)
    assert "<h1>Not found</h1>" in page.text
    assert as_json.json["error"]


def test_a_feed_sends_a_join(node: Cluster, client: HttpClient) -> None:
    group, topic = idle_group(node, client)
    with client.feed(group_path(group)) as feed:
        before = {content["name"] for kind, content in (next(feed) for _ in range(5))}

        with member(node, topic, group, name="newcomer"):
            seen = next(
                content
                for kind, content in feed
                if kind == "part" and content["name"] == "members" and "newcomer" in content["html"]
            )

    assert before == {"head", "rebalances", "footnote", "members", "offsets"}
    assert "<table" in seen["html"]


@pytest.mark.parametrize("path", sorted(PAGES))
def test_every_response_has_security_headers(client: HttpClient, path: str) -> None:
    for address in (path, f"{path}.json", "/static/console.js", "/nonsense"):
        response = client.get(address)
        assert "script-src 'self'" in response.headers["content-security-policy"]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["x-frame-options"] == "DENY"
    assert client.get(path).headers["cache-control"] == "no-store"


def test_no_page_has_inline_scripts_or_styles(node: Cluster, client: HttpClient) -> None:
    group, topic = idle_group(node, client)

    for path in ("/overview", "/groups", group_path(group), "/topics", topic_path(topic)):
        page = PageParser(client.get(path).text)
        assert page.tags >= {"main", "nav", "link"}
        assert "style" not in page.tags
        assert not {name for name, _ in page.attributes if name == "style" or name[:2] == "on"}
        addresses = {each for name, each in page.attributes if name in {"src", "href", "action"}}
        assert all(re.match(r"[/#]\w*|/$", each) for each in addresses), addresses
        assert page.scripts == []


def test_another_host_header_is_rejected(client: HttpClient) -> None:
    assert client.get("/overview", host="evil.example").status == 421
    assert client.get("/overview.json", host="evil.example:80").status == 421


def test_a_dry_run_changes_nothing_and_the_reset_applies_its_plan(
    node: Cluster, client: HttpClient
) -> None:
    group, topic = idle_group(node, client, committed=3)
    path = f"{group_path(group)}/reset"
    token = client.form_token(path)

    dry = client.post(path, {"form_token": token, "target": "latest", "topics": ""})
    unchanged = client.json(group_path(group))["group"]["offsets"][0]["committed"]
    plan = re.search(r'name="plan" value="([^"]*)"', dry.text)
    assert plan is not None
    done = client.post(path, {"form_token": token, "plan": plan[1]})

    assert (dry.status, done.status) == (200, 200)
    assert "Nothing has been changed yet" in dry.text
    assert "0 records would be read again and 7 records skipped" in dry.text
    assert unchanged == 3
    assert plan[1] == f"{topic},0,10\n"
    assert "Offsets were reset" in done.text
    client.wait_json(group_path(group), lambda data: data["group"]["offsets"][0]["committed"] == 10)


@pytest.mark.parametrize(
    ("form", "new"),
    [
        ({"target": "earliest"}, 0),
        ({"target": "offset", "value": "5"}, 5),
        ({"target": "shift", "value": "-2"}, 1),
        ({"target": "since", "value": "2000-01-01T00:00"}, 0),
        ({"target": "ago", "value": "7d"}, 0),
    ],
)
def test_every_reset_target_has_its_new_offset(
    node: Cluster, client: HttpClient, form: dict[str, str], new: int
) -> None:
    group, topic = idle_group(node, client, committed=3)
    path = f"{group_path(group)}/reset"
    token = client.form_token(path)

    response = client.post(f"{path}.json", {"form_token": token, **form, "topics": f"{topic}:0"})

    assert response.json["plan"]["rows"][0]["new"] == new
    assert not response.json["is_done"]


@pytest.mark.parametrize(
    "form",
    [
        {"target": "sideways"},
        {"target": "offset", "value": "many"},
        {"target": "offset", "value": "-1"},
        {"target": "since", "value": "yesterday"},
        {"target": "earliest", "topics": "no-such-topic"},
        {"plan": "nonsense"},
        {"plan": "a,b,c"},
    ],
)
def test_an_invalid_reset_is_rejected(
    node: Cluster, client: HttpClient, form: dict[str, str]
) -> None:
    group, _ = idle_group(node, client)
    path = f"{group_path(group)}/reset"
    token = client.form_token(path)

    response = client.post(f"{path}.json", {"form_token": token, **form})

    assert response.status in {404, 409}
    assert response.json["error"].endswith(".")


def test_a_group_with_members_is_not_reset(node: Cluster, client: HttpClient) -> None:
    group, topic = idle_group(node, client)
    path = f"{group_path(group)}/reset"
    with member(node, topic, group):
        token = client.form_token(path)

        response = client.post(f"{path}.json", {"form_token": token, "target": "earliest"})

    assert response.status == 409
    assert "has 1 member" in response.json["error"]


def test_a_write_from_another_origin_is_rejected(node: Cluster, client: HttpClient) -> None:
    group, _ = idle_group(node, client)
    path = f"{group_path(group)}/reset"
    token = client.form_token(path)
    form = {"form_token": token, "target": "earliest"}

    refused = [
        client.post(path, form, origin="http://evil.example"),
        client.post(path, form, origin=f"https://{client.host}"),
        client.post(path, form, origin="http://127.0.0.1"),
        client.post(path, form, origin=None),
        client.post(path, {"target": "earliest"}),
        HttpClient(client.url).post(path, form),
    ]

    assert [each.status for each in refused] == [403] * 6


def test_an_invalid_form_is_rejected(node: Cluster, client: HttpClient) -> None:
    group, _ = idle_group(node, client)
    path = f"{group_path(group)}/reset"

    odd = client.request("POST", path, {"origin": client.url}, "no equals sign")
    large = client.post(path, {"plan": "x" * (FORM_BYTES_MAX + 1)})

    assert (odd.status, large.status) == (400, 400)


def test_a_write_requires_the_token(node: Cluster) -> None:
    expected = "right-token"
    with Console(node.bootstrap_servers, listen="127.0.0.1:0", token=expected) as console:
        client = HttpClient(console.url)
        group, _ = idle_group(node, client)
        path = f"{group_path(group)}/reset"
        token = client.form_token(path)
        form = {"form_token": token, "target": "earliest"}

        without = client.post(path, form)
        wrong = client.post(path, {**form, "token": "wrong-token"})
        right = client.post(path, {**form, "token": expected})

    assert (without.status, wrong.status, right.status) == (403, 403, 200)


def test_the_theme_cookie(client: HttpClient) -> None:
    client.cookies["kohort-theme"] = "dark"
    dark = client.get("/groups")
    client.cookies["kohort-theme"] = '"><script>'
    odd = client.get("/groups")

    assert 'data-theme="dark"' in dark.text
    assert "data-theme" not in odd.text
