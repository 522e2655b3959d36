"""The JSON version of the report: programs read it, so its names and types are stable."""

import json
from typing import Any

from kohort.pipeline.forensics.report import report_as_json
from kohort.pipeline.forensics.report.builder import build_report
from kohort.pipeline.forensics.report.report_model import EmptyPeriod
from tests.pipeline.forensics.report.samples import (
    HOUR_MS,
    NOTHING,
    START_MS,
    detail,
    group,
    report,
    unstable_group,
)

IDENTITY = {"member_id": "text", "instance_id": "null", "client_id": "text", "client_host": "text"}

SHAPE = {
    "format": "text",
    "version": "number",
    "headline": "text",
    "worst": "text",
    "since_ms": "number",
    "until_ms": "number",
    "bin_ms": "number",
    "knowledge": "text",
    "is_exact": "truth",
    "severity_help": "text",
    "groups_total": "number",
    "commits": "number",
    "events": "number",
    "undecodable": "number",
    "omitted": ["text"],
    "groups": [
        {
            "group_id": "text",
            "status": "text",
            "severity": {
                "findings": "number",
                "ownerless": "number",
                "rebalancing": "number",
                "rate": "number",
                "lag": "number",
                "total": "number",
            },
            "sentence": "text",
            "state": "text",
            "protocol": "text",
            "members": "number",
            "partitions": "number",
            "rebalances": "number",
            "rebalances_per_hour": "number",
            "rebalancing_share": "number",
            "ownerless_ms": "number",
            "ownerless_share": "number",
            "initiator": "text",
            "findings": ["text"],
            "lag_records": "number",
            "lag_status": "text",
            "exact": "number",
            "confidence": "null",
            "bins": [{"number": "number", "rebalances": "number", "ownerless_ms": "number"}],
            "has_details": "truth",
        }
    ],
    "details": [
        {
            "group_id": "text",
            "about": "text",
            "answers": {"why": "text", "who": "text", "cost": "text", "change": "text"},
            "knowledge": "text",
            "findings": [
                {
                    "finding": "text",
                    "severity": "text",
                    "subject": "text",
                    "from_ms": "number",
                    "to_ms": "number",
                    "count": "number",
                    "what": "text",
                    "advice": "text",
                    "setting": "text",
                    "would_have_saved_ms": "number",
                    "evidence": "text",
                }
            ],
            "shown_from_ms": "number",
            "omitted": ["text"],
            "rebalances": [
                {
                    "generation_before": "number",
                    "generation": "number",
                    "started_ms": "number",
                    "ended_ms": "number",
                    "duration_ms": "number",
                    "join_ms": "number",
                    "sync_ms": "number",
                    "ending": "text",
                    "trigger": "text",
                    "initiator": IDENTITY,
                    "client_reason": "null",
                    "confidence": "number",
                    "is_exact": "truth",
                    "is_cooperative": "truth",
                    "members_before": "number",
                    "members_after": "number",
                    "joined": [],
                    "joined_total": "number",
                    "departed": [IDENTITY],
                    "departed_total": "number",
                    "slowest": IDENTITY,
                    "slowest_join_ms": "number",
                    "moved": "number",
                    "moved_needlessly": "number",
                    "ownerless_ms": "number",
                    "replayed": "number",
                }
            ],
            "clients": [
                {
                    "name": "text",
                    "rebalances_started": "number",
                    "memberships": [
                        {
                            "member_id": "text",
                            "from_ms": "number",
                            "to_ms": "number",
                            "from_generation": "number",
                            "to_generation": "number",
                            "ending": "text",
                            "is_exact": "truth",
                        }
                    ],
                }
            ],
            "partitions": [["text", "number"]],
            "ownership": [
                {
                    "member_id": "text",
                    "client_id": "text",
                    "instance_id": "null",
                    "from_ms": "number",
                    "to_ms": "null",
                    "gap_before_ms": "number",
                    "partitions": [["text", "number"]],
                }
            ],
            "empty_periods": [{"from_ms": "number", "to_ms": "null"}],
            "lag": [{"at_ms": "number", "records": "number", "seconds": "number"}],
            "lagging_partitions": [
                {
                    "topic": "text",
                    "partition": "number",
                    "status": "text",
                    "since_ms": "number",
                    "lag_records": "number",
                    "owner": "text",
                    "reason": "text",
                }
            ],
        }
    ],
}


def shape(thing: Any) -> Any:
    """The types of all values; a list has the type of its first item, a pair stays as it is."""
    match thing:
        case dict():
            return {name: shape(each) for name, each in thing.items()}
        case [str(), int()]:
            return ["text", "number"]
        case list():
            return [shape(each) for each in thing[:1]]
        case bool():
            return "truth"
        case None:
            return "null"
        case int() | float():
            return "number"
        case _:
            assert isinstance(thing, str)
            return "text"


def test_names_and_types_are_stable() -> None:
    whole = detail(
        empty_periods=(EmptyPeriod(from_ms=START_MS + HOUR_MS, to_ms=None),), memberships_total=9
    )

    shown = json.loads(report_as_json(report(unstable_group(), group("b"), details=(whole,))))

    assert shape(shown) == SHAPE
    assert (shown["format"], shown["version"]) == ("kohort-forensics-report", 2)


def test_an_empty_report_has_all_fields() -> None:
    shown = json.loads(report_as_json(build_report(NOTHING, [], [])))

    assert shown.keys() == SHAPE.keys()
    assert (shown["groups"], shown["details"], shown["since_ms"]) == ([], [], None)


def test_names_are_not_escaped() -> None:
    shown = json.loads(report_as_json(report(group("café </script> \u202e"))))

    assert shown["groups"][0]["group_id"] == "café </script> \u202e"
