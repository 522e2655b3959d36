"""The page: whole, harmless and small, whatever is in the tables."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from kohort.pipeline.forensics.report import Report, page, report_as_html
from kohort.pipeline.forensics.report.telling import tell
from tests.pipeline.forensics.report.samples import (
    NOTHING,
    detail,
    finding,
    group,
    life,
    party,
    rebalance,
    report,
    restless,
    stretch,
)

VOID = {"meta", "input"}
ADDRESSES = {"src", "href", "action", "data", "poster", "srcset", "xlink:href", "formaction"}
EVIL = "<script>alert('x')</script>\"' onload=\"alert(1) & </script><!--"


class Reader(HTMLParser):
    """Reads a page strictly: what is opened is closed, in that order, and ids are there once."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ADDRESSES]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag == "path", "only SVG knows elements that close themselves"
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["script"]:
            attributes, text = self.scripts.pop()
            self.scripts.append((attributes, text + data))
        elif self.open[-1:] == ["style"]:
            self.styles.append(data)
        else:
            self.text.append(data)

    @property
    def data(self) -> dict[str, Any]:
        return {
            str(attributes["id"]): json.loads(text)
            for attributes, text in self.scripts
            if attributes.get("type") == "application/json"
        }

    @property
    def program(self) -> str:
        (script,) = [text for attributes, text in self.scripts if not attributes]
        return script


REPORTS = {
    "nothing": tell(NOTHING, [], []),
    "one quiet group": report(group(), details=(detail(rebalances=(), findings=(), lives=()),)),
    "no details": report(restless(), group("b")),
    "no events": report(
        restless(exact=0, confidence=0.8),
        details=(
            detail(
                rebalances=(
                    rebalance(is_exact=False, confidence=0.8, join_ms=None, sync_ms=None),
                    rebalance(started_ms=None, duration_ms=None, culprit=None, slowest=None),
                )
            ),
        ),
    ),
    "mixed": report(restless(), restless("b", exact=3, confidence=0.7), details=(detail(),)),
    "evil": report(
        restless(EVIL, protocol=EVIL),
        details=(
            detail(
                EVIL,
                rebalances=(rebalance(culprit=party(EVIL), client_reason=EVIL, trigger=EVIL),),
                lives=(life(EVIL, 0),),
                findings=(finding(what=EVIL, advice=EVIL, setting=EVIL, subject=EVIL),),
            ),
        ),
    ),
    "long names": report(restless("g" * 249), details=(detail("g" * 249),)),
}

every_report = pytest.mark.parametrize("told", REPORTS.values(), ids=REPORTS.keys())


@every_report
def test_a_page_is_well_formed(told: Report) -> None:
    read = Reader(report_as_html(told))

    assert len(set(read.ids)) == len(read.ids)
    assert len(read.data) == 1 + len(told.stories)


@every_report
def test_a_page_refers_to_nothing_outside_itself(told: Report) -> None:
    text = report_as_html(told)

    read = Reader(text)

    assert all(address.startswith("#") for address in read.addresses)
    # The one address in the script is the name of SVG, which nobody looks up.
    assert set(re.findall(r"\w+://[^\s\"'<>]+", read.program + "".join(read.styles))) == {
        "http://www.w3.org/2000/svg"
    }
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttp|WebSocket|import\(", read.program)
    assert "@import" not in "".join(read.styles)
    assert "url(" not in "".join(read.styles)


@every_report
def test_a_page_allows_itself_its_own_script_and_style_and_nothing_else(told: Report) -> None:
    read = Reader(report_as_html(told))

    def digest(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    policy = _policy(read)
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == f"'sha256-{digest(read.program)}'"
    assert policy["style-src"] == f"'sha256-{digest(''.join(read.styles))}'"
    assert not [name for name, _ in read.attributes if name.startswith("on") or name == "style"]


def _policy(read: Reader) -> dict[str, str]:
    (policy,) = [text for name, text in read.attributes if "default-src" in text]
    return dict(each.strip().split(" ", 1) for each in policy.split(";"))


def test_names_that_look_like_markup_stay_text() -> None:
    text = report_as_html(REPORTS["evil"])

    read = Reader(text)

    assert len(read.scripts) == 3
    assert "<script>alert" not in text
    assert EVIL in read.text
    assert read.data["story-0"]["id"] == EVIL
    assert read.data["story-0"]["rebalances"]["rows"][0].count(EVIL) == 2
    assert read.data["head"]["stories"] == [EVIL]


def test_the_script_never_turns_text_into_markup() -> None:
    read = Reader(report_as_html(REPORTS["nothing"]))

    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function",
        read.program,
    )


def test_a_group_in_full_has_a_link_and_another_has_none() -> None:
    read = Reader(report_as_html(report(restless("a b/ü"), group("b"), details=(detail("a b/ü"),))))

    # Once in the sentence about the worst group, once in the list.
    assert [each for each in read.addresses if "group=" in each] == ["#group=a%20b%2F%C3%BC"] * 2


def test_the_headline_and_what_the_data_is_stand_in_the_page_itself() -> None:
    told = REPORTS["no events"]

    text = "".join(Reader(report_as_html(told)).text)

    assert told.headline in text
    assert told.worst in text
    assert told.knowledge in text
    assert told.measure in text
    assert "80 % sure" in text


def test_a_page_of_a_thousand_groups_and_long_stories_stays_small() -> None:
    names = [f"group-{number:04}" for number in range(1000)]
    heavy = tuple(
        detail(
            name,
            rebalances=tuple(rebalance(each) for each in range(300)),
            lives=tuple(life(f"worker-{each}", each, each + 9) for each in range(300)),
            stretches=tuple(
                stretch(f"worker-{each % 9}-1", each, each + 1, *range(each % 7, 48, 7))
                for each in range(3000)
            ),
        )
        for name in names[:50]
    )
    told = report(*(restless(name) for name in names), details=heavy)

    text = report_as_html(told)

    size = len(text.encode())
    read = Reader(text)
    assert size < page.STORIES_BYTES_MAX + page.LIST_BYTES_MAX + 100_000
    assert read.data["head"]["stories"] == names[: len(read.data) - 1]
    assert 10 <= len(read.data) - 1 < 50
    assert f"only the first {len(read.data) - 1:,} of those groups" in text
    assert all(f">{name}<" in text for name in names)


def test_a_list_that_is_too_long_says_so() -> None:
    told = report(*(restless(f"{'g' * 2000}-{number}") for number in range(2000)))

    text = report_as_html(told)

    assert len(text.encode()) < page.LIST_BYTES_MAX + 100_000
    listed = text.count("<tr data-need=")
    assert 100 < listed < 2000
    assert f"The list has the first {listed:,} of 2,000 groups" in text
