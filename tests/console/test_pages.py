"""Every page over HTTP: what it says, its twin, its feed, and what it refuses."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from itertools import takewhile
from typing import Any

import pytest

from kohort.client.consumer import Consumer
from kohort.console.address import group_path, topic_path
from kohort.console.app import FORM_BYTES_MAX, PAGES
from kohort.console.server import Console
from kohort.types import Topic
from tests.client.clusters import Cluster, Written, at
from tests.console.visiting import LONG_S, Visitor
from tests.waiting import wait_until

MARKUP = "<img src=x onerror=alert(1)>&'\"</script>"


class Anatomy(HTMLParser):
    """What a page is made of; `scripts` are those that stand in it and could run."""

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
    """In its group, with a share of the topic, and with nothing committed."""
    options = {"group_id": group, "client_id": name, "enable_auto_commit": False}
    with node.consumer(**options) as consumer:
        consumer.subscribe([topic])
        wait_until(lambda: (consumer.poll(20), consumer.assignment())[1], LONG_S, "a share")
        yield consumer


def idle_group(node: Cluster, visitor: Visitor, committed: int = 3) -> tuple[str, Topic]:
    """A group without members that has committed an offset of a topic with ten records."""
    topic, group = node.create_topic(), node.name_group()
    node.produce(topic, 10)
    with node.consumer(group_id=group, enable_auto_commit=False) as consumer:
        consumer.commit({at(topic): committed})
    visitor.wait_json(group_path(group), lambda told: told["group"]["readings"])
    return group, topic


def _is_exact(view: Any) -> bool:
    """Events have told of every rebalance."""
    told = view["rebalances"]
    return bool(told) and all(each["is_exact"] and each["ending"] for each in told)


def test_the_overview_tells_of_all_groups(node: Cluster, visitor: Visitor) -> None:
    group, _ = idle_group(node, visitor)

    page, told = visitor.get("/overview"), visitor.json("/overview")

    assert page.status == 200
    assert told["headline"] in page.text
    assert told["overview"]["groups"] >= 1
    assert told["cluster"] == node.bootstrap_servers
    assert told["health"]["is_reachable"]
    assert visitor.get("/", follow="no").status == 307
    assert visitor.json(f"/groups?search={group}")["page"]["found"] == 1


def test_a_group_tells_members_offsets_and_rebalances(node: Cluster, visitor: Visitor) -> None:
    topic, group = node.create_topic(2), node.name_group()
    node.produce(topic, 10)

    with member(node, topic, group) as consumer:
        consumer.commit({at(topic): 4})
        told = visitor.wait_json(
            group_path(group),
            lambda told: told["group"]["row"]["lag"] == 6 and _is_exact(told["group"]),
        )
        page = visitor.get(group_path(group))

    view = told["group"]
    assert view["row"]["state"] == "Stable"
    assert view["members"][0]["party"]["client_id"] == "till-1"
    assert view["rebalances"][-1]["trigger"] == "member-joined"
    assert 'class="node on good"' in page.text
    assert "till-1" in page.text


def test_a_rebalance_has_a_page_of_its_own(node: Cluster, visitor: Visitor) -> None:
    topic, group = node.create_topic(2), node.name_group()
    with member(node, topic, group):
        told = visitor.wait_json(group_path(group), lambda told: _is_exact(told["group"]))
    key = told["group"]["rebalances"][0]["key"]

    page = visitor.get(f"{group_path(group)}/rebalances/{key}")
    twin = visitor.json(f"{group_path(group)}/rebalances/{key}")

    assert "It began because a new member joined: till-1." in page.text
    assert twin["rebalance"]["participants"][0]["got"] == [
        {"topic": topic, "partition": 0},
        {"topic": topic, "partition": 1},
    ]
    assert len(twin["moves"]) == 2


def test_groups_are_found_sorted_and_paged(node: Cluster, visitor: Visitor) -> None:
    name = node.name_group()
    topic = node.create_topic()
    for number in range(3):
        with node.consumer(group_id=f"{name}-{number}", enable_auto_commit=False) as consumer:
            consumer.commit({at(topic): number})
    visitor.wait_json(f"/groups?search={name}", lambda told: told["page"]["found"] == 3)

    first = visitor.json(f"/groups?search={name.upper()}&sort=group&per_page=2")
    rest = visitor.json(f"/groups?search={name}&sort=group&order=down&per_page=2&page=2")
    page = visitor.get(f"/groups?search={name}&sort=group")

    assert [each["group_id"] for each in first["page"]["rows"]] == [f"{name}-0", f"{name}-1"]
    assert [each["group_id"] for each in rest["page"]["rows"]] == [f"{name}-0"]
    assert 'aria-sort="ascending"' in page.text


@pytest.mark.parametrize(
    "query", ["sort=beauty", "need=much", "order=sideways", "page=first", "per_page=x"]
)
def test_a_question_that_makes_no_sense_is_told_so(visitor: Visitor, query: str) -> None:
    answer = visitor.get(f"/groups.json?{query}")

    assert answer.status == 400
    assert answer.told["error"].endswith(".")


def test_topics_tell_their_partitions_sizes_and_readers(node: Cluster, visitor: Visitor) -> None:
    group, topic = idle_group(node, visitor)

    listed = visitor.json(f"/topics?search={topic}")
    told = visitor.json(topic_path(topic))
    internal = visitor.json("/topics?search=__consumer_offsets&internal=yes")
    hidden = visitor.json("/topics?search=__consumer_offsets")

    assert (listed["rows"][0]["partitions"], listed["rows"][0]["readers"]) == (1, 1)
    assert listed["rows"][0]["size"] > 0
    assert told["readers"] == [group]
    assert (told["partitions"][0]["start"], told["partitions"][0]["end"]) == (0, 10)
    assert (internal["found"], hidden["found"]) == (1, 0)


def test_records_are_browsed_from_the_end_or_from_an_offset(
    node: Cluster, visitor: Visitor
) -> None:
    topic = node.create_topic()
    node.produce(topic, 10)
    path = f"{topic_path(topic)}/records"

    last = visitor.json(f"{path}?count=3")
    some = visitor.json(f"{path}?offset=4&count=2")
    beyond = visitor.json(f"{path}?offset=99")

    assert [each["offset"] for each in last["browsed"]["records"]] == [7, 8, 9]
    assert [each["value"]["text"] for each in some["browsed"]["records"]] == ["4", "5"]
    assert beyond["browsed"]["records"] == []
    assert f"{path}?partition=0&amp;count=3&amp;offset=4" in visitor.get(f"{path}?count=3").text


def test_records_are_shown_and_never_trusted(node: Cluster, visitor: Visitor) -> None:
    topic = node.create_topic()
    records = [
        Written(key=None, value=None, headers=[(MARKUP, b"\x00\xff")]),
        Written(key=MARKUP.encode(), value=MARKUP.encode()),
    ]
    node.produce(topic, records)

    page = visitor.get(f"{topic_path(topic)}/records")
    first, second = visitor.json(f"{topic_path(topic)}/records")["browsed"]["records"]

    assert "<img" not in page.text
    assert "&lt;img src=x" in page.text
    assert (first["key"], first["value"]) == (None, None)
    assert first["headers"] == [
        [MARKUP, {"text": "00 ff", "is_text": False, "size": 2, "is_cut": False}]
    ]
    assert second["value"]["text"] == MARKUP


def test_names_with_markup_in_them_stay_text(node: Cluster, visitor: Visitor) -> None:
    group = f"{MARKUP}{node.name_group()}"
    topic = node.create_topic()

    with member(node, topic, group, name=MARKUP) as consumer:
        consumer.commit({at(topic): 0})
        visitor.wait_json(
            group_path(group),
            lambda told: told["group"]["stretches"] and told["group"]["readings"],
        )
        pages = [visitor.get(group_path(group)), visitor.get("/groups"), visitor.get("/overview")]
        with visitor.feed(group_path(group)) as feed:
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
def test_what_is_not_there_is_told_in_both_forms(visitor: Visitor, path: str) -> None:
    page, twin = visitor.get(path), visitor.get(f"{path}.json")

    assert (page.status, twin.status) == (404, 404)
    assert "<h1>Not here</h1>" in page.text
    assert twin.told["error"]


def test_a_feed_tells_of_a_join_as_it_happens(node: Cluster, visitor: Visitor) -> None:
    group, topic = idle_group(node, visitor)
    with visitor.feed(group_path(group)) as feed:
        before = {content["name"] for kind, content in (next(feed) for _ in range(5))}

        with member(node, topic, group, name="newcomer"):
            seen = next(
                content
                for kind, content in feed
                if kind == "part" and content["name"] == "members" and "newcomer" in content["html"]
            )

    assert before == {"head", "rebalances", "notes", "members", "offsets"}
    assert "<table" in seen["html"]


@pytest.mark.parametrize("path", sorted(PAGES))
def test_every_answer_forbids_what_pages_need_not_do(visitor: Visitor, path: str) -> None:
    for address in (path, f"{path}.json", "/static/console.js", "/nonsense"):
        answer = visitor.get(address)
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
    assert visitor.get(path).headers["cache-control"] == "no-store"


def test_no_page_has_a_script_or_a_style_in_it(node: Cluster, visitor: Visitor) -> None:
    group, topic = idle_group(node, visitor)

    for path in ("/overview", "/groups", group_path(group), "/topics", topic_path(topic)):
        page = Anatomy(visitor.get(path).text)
        assert page.tags >= {"main", "nav", "link"}
        assert "style" not in page.tags
        assert not {name for name, _ in page.attributes if name == "style" or name[:2] == "on"}
        addresses = {each for name, each in page.attributes if name in {"src", "href", "action"}}
        assert all(re.match(r"[/#]\w*|/$", each) for each in addresses), addresses
        assert page.scripts == []


def test_another_name_for_this_machine_is_refused(visitor: Visitor) -> None:
    assert visitor.get("/overview", host="evil.example").status == 421
    assert visitor.get("/overview.json", host="evil.example:80").status == 421


def test_a_dry_run_changes_nothing_and_the_deed_what_it_showed(
    node: Cluster, visitor: Visitor
) -> None:
    group, topic = idle_group(node, visitor, committed=3)
    path = f"{group_path(group)}/reset"
    token = visitor.form_token(path)

    dry = visitor.post(path, {"form_token": token, "way": "latest", "topics": ""})
    unchanged = visitor.json(group_path(group))["group"]["readings"][0]["committed"]
    plan = re.search(r'name="plan" value="([^"]*)"', dry.text)
    assert plan is not None
    done = visitor.post(path, {"form_token": token, "plan": plan[1]})

    assert (dry.status, done.status) == (200, 200)
    assert "Nothing has been changed yet" in dry.text
    assert "7 records would be skipped" in dry.text
    assert unchanged == 3
    assert plan[1] == f"{topic},0,10\n"
    assert "The offsets are reset" in done.text
    visitor.wait_json(
        group_path(group), lambda told: told["group"]["readings"][0]["committed"] == 10
    )


@pytest.mark.parametrize(
    ("form", "new"),
    [
        ({"way": "earliest"}, 0),
        ({"way": "offset", "value": "5"}, 5),
        ({"way": "shift", "value": "-2"}, 1),
        ({"way": "since", "value": "2000-01-01T00:00"}, 0),
        ({"way": "ago", "value": "7d"}, 0),
    ],
)
def test_there_are_many_ways_to_say_where_to(
    node: Cluster, visitor: Visitor, form: dict[str, str], new: int
) -> None:
    group, topic = idle_group(node, visitor, committed=3)
    path = f"{group_path(group)}/reset"
    token = visitor.form_token(path)

    answer = visitor.post(f"{path}.json", {"form_token": token, **form, "topics": f"{topic}:0"})

    assert answer.told["plan"]["rows"][0]["new"] == new
    assert not answer.told["is_done"]


@pytest.mark.parametrize(
    "form",
    [
        {"way": "sideways"},
        {"way": "offset", "value": "many"},
        {"way": "offset", "value": "-1"},
        {"way": "since", "value": "yesterday"},
        {"way": "earliest", "topics": "no-such-topic"},
        {"plan": "nonsense"},
        {"plan": "a,b,c"},
    ],
)
def test_a_reset_that_makes_no_sense_is_refused_in_a_sentence(
    node: Cluster, visitor: Visitor, form: dict[str, str]
) -> None:
    group, _ = idle_group(node, visitor)
    path = f"{group_path(group)}/reset"
    token = visitor.form_token(path)

    answer = visitor.post(f"{path}.json", {"form_token": token, **form})

    assert answer.status in {404, 409}
    assert answer.told["error"].endswith(".")


def test_a_group_with_members_is_not_reset(node: Cluster, visitor: Visitor) -> None:
    group, topic = idle_group(node, visitor)
    path = f"{group_path(group)}/reset"
    with member(node, topic, group):
        token = visitor.form_token(path)

        answer = visitor.post(f"{path}.json", {"form_token": token, "way": "earliest"})

    assert answer.status == 409
    assert "has 1 member" in answer.told["error"]


def test_a_write_that_is_not_from_our_page_is_refused(node: Cluster, visitor: Visitor) -> None:
    group, _ = idle_group(node, visitor)
    path = f"{group_path(group)}/reset"
    token = visitor.form_token(path)
    form = {"form_token": token, "way": "earliest"}

    refused = [
        visitor.post(path, form, origin="http://evil.example"),
        visitor.post(path, form, origin=None),
        visitor.post(path, {"way": "earliest"}),
        Visitor(visitor.url).post(path, form),
    ]

    assert [each.status for each in refused] == [403] * 4


def test_a_form_that_cannot_be_read_is_refused(node: Cluster, visitor: Visitor) -> None:
    group, _ = idle_group(node, visitor)
    path = f"{group_path(group)}/reset"

    odd = visitor.ask("POST", path, {"origin": visitor.url}, "no equals sign")
    large = visitor.post(path, {"plan": "x" * (FORM_BYTES_MAX + 1)})

    assert (odd.status, large.status) == (400, 400)


def test_beyond_loopback_a_write_needs_the_token(node: Cluster) -> None:
    word = "let-me"
    with Console(node.bootstrap_servers, listen="127.0.0.1:0", token=word) as console:
        visitor = Visitor(console.url)
        group, _ = idle_group(node, visitor)
        path = f"{group_path(group)}/reset"
        token = visitor.form_token(path)
        form = {"form_token": token, "way": "earliest"}

        without = visitor.post(path, form)
        wrong = visitor.post(path, {**form, "token": "let-you"})
        right = visitor.post(path, {**form, "token": word})

    assert (without.status, wrong.status, right.status) == (403, 403, 200)


def test_the_reader_chooses_light_or_dark(visitor: Visitor) -> None:
    visitor.cookies["kohort-theme"] = "dark"
    dark = visitor.get("/groups")
    visitor.cookies["kohort-theme"] = '"><script>'
    odd = visitor.get("/groups")

    assert 'data-theme="dark"' in dark.text
    assert "data-theme" not in odd.text
