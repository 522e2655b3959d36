"""The JSON twin: programs read it, so its names and shapes stay."""

import json
from typing import Any

from kohort.pipeline.forensics.report import report_as_json
from kohort.pipeline.forensics.report.material import Absence
from kohort.pipeline.forensics.report.telling import tell
from tests.pipeline.forensics.report.samples import (
    DAWN_MS,
    HOUR_MS,
    NOTHING,
    detail,
    group,
    report,
    restless,
)

PARTY = {"member_id": "text", "instance_id": "null", "client_id": "text", "client_host": "text"}

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
    "measure": "text",
    "groups_total": "number",
    "commits": "number",
    "events": "number",
    "undecodable": "number",
    "left_out": ["text"],
    "groups": [
        {
            "group_id": "text",
            "need": "text",
            "pain": {
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
            "starter": "text",
            "findings": ["text"],
            "lag_records": "number",
            "lag_status": "text",
            "exact": "number",
            "confidence": "null",
            "strip": [{"number": "number", "rebalances": "number", "ownerless_ms": "number"}],
            "is_in_full": "truth",
        }
    ],
    "stories": [
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
            "left_out": ["text"],
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
                    "culprit": PARTY,
                    "client_reason": "null",
                    "confidence": "number",
                    "is_exact": "truth",
                    "is_cooperative": "truth",
                    "members_before": "number",
                    "members_after": "number",
                    "joined": [],
                    "joined_total": "number",
                    "departed": [PARTY],
                    "departed_total": "number",
                    "slowest": PARTY,
                    "slowest_join_ms": "number",
                    "moved": "number",
                    "moved_needlessly": "number",
                    "ownerless_ms": "number",
                    "replayed": "number",
                }
            ],
            "programs": [
                {
                    "name": "text",
                    "began": "number",
                    "lives": [
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
            "places": [["text", "number"]],
            "stretches": [
                {
                    "member_id": "text",
                    "client_id": "text",
                    "instance_id": "null",
                    "from_ms": "number",
                    "to_ms": "null",
                    "gap_before_ms": "number",
                    "places": [["text", "number"]],
                }
            ],
            "absences": [{"from_ms": "number", "to_ms": "null"}],
            "lag": [{"at_ms": "number", "records": "number", "seconds": "number"}],
            "laggards": [
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
    """The kinds of things, with the first of every list for all of them, or pairs as they are."""
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


def test_names_and_shapes_of_the_twin_stay() -> None:
    whole = detail(absences=(Absence(from_ms=DAWN_MS + HOUR_MS, to_ms=None),), lives_total=9)

    told = json.loads(report_as_json(report(restless(), group("b"), details=(whole,))))

    assert shape(told) == SHAPE
    assert (told["format"], told["version"]) == ("kohort-forensics-report", 1)


def test_the_twin_of_nothing_is_whole() -> None:
    told = json.loads(report_as_json(tell(NOTHING, [], [])))

    assert told.keys() == SHAPE.keys()
    assert (told["groups"], told["stories"], told["since_ms"]) == ([], [], None)


def test_names_in_the_twin_are_as_they_are() -> None:
    told = json.loads(report_as_json(report(group("café </script> \u202e"))))

    assert told["groups"][0]["group_id"] == "café </script> \u202e"
