"""The page is well-formed, safe and small for any content of the tables."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from kohort.pipeline.forensics.report import Report, page, report_as_html
from kohort.pipeline.forensics.report.builder import build_report
from tests.pipeline.forensics.report.samples import (
    NOTHING,
    detail,
    finding,
    group,
    identity,
    membership,
    owned,
    rebalance,
    report,
    unstable_group,
)

VOID = {"meta", "input"}
ADDRESSES = {"src", "href", "action", "data", "poster", "srcset", "xlink:href", "formaction"}
EVIL = "<script>alert('x')</script>\"' onload=\"alert(1) & </script><!--"


class Reader(HTMLParser):
    """A strict parser: elements are closed in order, and ids are unique."""

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
    "nothing": build_report(NOTHING, [], []),
    "one healthy group": report(
        group(), details=(detail(rebalances=(), findings=(), memberships=()),)
    ),
    "no details": report(unstable_group(), group("b")),
    "no events": report(
        unstable_group(exact=0, confidence=0.8),
        details=(
            detail(
                rebalances=(
                    rebalance(is_exact=False, confidence=0.8, join_ms=None, sync_ms=None),
                    rebalance(started_ms=None, duration_ms=None, initiator=None, slowest=None),
                )
            ),
        ),
    ),
    "mixed": report(
        unstable_group(), unstable_group("b", exact=3, confidence=0.7), details=(detail(),)
    ),
    "evil": report(
        unstable_group(EVIL, protocol=EVIL),
        details=(
            detail(
                EVIL,
                rebalances=(rebalance(initiator=identity(EVIL), client_reason=EVIL, trigger=EVIL),),
                memberships=(membership(EVIL, 0),),
                findings=(finding(what=EVIL, advice=EVIL, setting=EVIL, subject=EVIL),),
            ),
        ),
    ),
    "long names": report(unstable_group("g" * 249), details=(detail("g" * 249),)),
}

every_report = pytest.mark.parametrize("shown", REPORTS.values(), ids=REPORTS.keys())


@every_report
def test_a_page_is_well_formed(shown: Report) -> None:
    read = Reader(report_as_html(shown))

    assert len(set(read.ids)) == len(read.ids)
    assert len(read.data) == 1 + len(shown.details)


@every_report
def test_a_page_refers_to_nothing_outside_itself(shown: Report) -> None:
    text = report_as_html(shown)

    read = Reader(text)

    assert all(address.startswith("#") for address in read.addresses)
    # The one URL in the script is the SVG namespace, which is never fetched.
    assert set(re.findall(r"\w+://[^\s\"'<>]+", read.program + "".join(read.styles))) == {
        "http://www.w3.org/2000/svg"
    }
    assert not re.search(r"url\((?!#)|@import|fetch\(|XMLHttp|WebSocket|import\(", read.program)
    assert "@import" not in "".join(read.styles)
    assert "url(" not in "".join(read.styles)


@every_report
def test_the_content_security_policy_allows_only_the_own_script_and_style(shown: Report) -> None:
    read = Reader(report_as_html(shown))

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


def test_names_with_markup_are_escaped() -> None:
    text = report_as_html(REPORTS["evil"])

    read = Reader(text)

    assert len(read.scripts) == 3
    assert "<script>alert" not in text
    assert EVIL in read.text
    assert read.data["details-0"]["id"] == EVIL
    assert read.data["details-0"]["rebalances"]["rows"][0].count(EVIL) == 2
    assert read.data["head"]["details"] == [EVIL]


def test_the_script_never_turns_text_into_markup() -> None:
    read = Reader(report_as_html(REPORTS["nothing"]))

    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function",
        read.program,
    )


def test_a_group_with_details_has_a_link_and_another_has_none() -> None:
    read = Reader(
        report_as_html(report(unstable_group("a b/ü"), group("b"), details=(detail("a b/ü"),)))
    )

    # Once in the sentence about the most severe group, once in the list.
    assert [each for each in read.addresses if "group=" in each] == ["#group=a%20b%2F%C3%BC"] * 2


def test_the_headline_and_the_data_quality_are_in_the_html() -> None:
    shown = REPORTS["no events"]

    text = "".join(Reader(report_as_html(shown)).text)

    assert shown.headline in text
    assert shown.worst in text
    assert shown.knowledge in text
    assert shown.severity_help in text
    assert "80 % confidence" in text


def test_a_page_of_a_thousand_groups_with_long_details_stays_small() -> None:
    names = [f"group-{number:04}" for number in range(1000)]
    heavy = tuple(
        detail(
            name,
            rebalances=tuple(rebalance(each) for each in range(300)),
            memberships=tuple(membership(f"worker-{each}", each, each + 9) for each in range(300)),
            ownership=tuple(
                owned(f"worker-{each % 9}-1", each, each + 1, *range(each % 7, 48, 7))
                for each in range(3000)
            ),
        )
        for name in names[:50]
    )
    shown = report(*(unstable_group(name) for name in names), details=heavy)

    text = report_as_html(shown)

    size = len(text.encode())
    read = Reader(text)
    assert size < page.DETAILS_BYTES_MAX + page.LIST_BYTES_MAX + 100_000
    assert read.data["head"]["details"] == names[: len(read.data) - 1]
    assert 10 <= len(read.data) - 1 < 50
    assert f"details of the first {len(read.data) - 1:,} of those groups" in text
    assert all(f">{name}<" in text for name in names)


def test_a_truncated_list_says_so() -> None:
    shown = report(*(unstable_group(f"{'g' * 2000}-{number}") for number in range(2000)))

    text = report_as_html(shown)

    assert len(text.encode()) < page.LIST_BYTES_MAX + 100_000
    listed = text.count("<tr data-status=")
    assert 100 < listed < 2000
    assert f"The list has the first {listed:,} of 2,000 groups" in text
