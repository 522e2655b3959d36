"""The recordings are complete and belong to existing conversations."""

from pathlib import Path

from kohort.node.dispatch import SERVED
from kohort.wire.api import find_api
from tests.apache.jars import VERSION
from tests.contract.conversations import recordings
from tests.contract.conversations.comparison import ADDITIONAL_MESSAGE, Deviation, Exchange
from tests.contract.conversations.conversation import find_conversations
from tests.contract.conversations.docs import page
from tests.contract.conversations.masks import Json
from tests.contract.conversations.recordings import RECORDED, find_run, merge
from tests.contract.conversations.statistics import (
    count_by_deviation,
    errors_in,
    find_recorded_exchanges,
)
from tests.tidy.deviations import find_deviations
from tests.tidy.repository import find_texts, read

REFRESH = "python -m tests.contract.conversations.docs > docs/reference/conversations.md"

NAMED_ERRORS = {
    "JoinGroup": (
        "FENCED_INSTANCE_ID",
        "GROUP_MAX_SIZE_REACHED",
        "INCONSISTENT_GROUP_PROTOCOL",
        "INVALID_GROUP_ID",
        "INVALID_SESSION_TIMEOUT",
        "MEMBER_ID_REQUIRED",
        "UNKNOWN_MEMBER_ID",
    ),
    "SyncGroup": (
        "FENCED_INSTANCE_ID",
        "ILLEGAL_GENERATION",
        "INCONSISTENT_GROUP_PROTOCOL",
        "INVALID_GROUP_ID",
        "REBALANCE_IN_PROGRESS",
        "UNKNOWN_MEMBER_ID",
    ),
    "Heartbeat": (
        "FENCED_INSTANCE_ID",
        "ILLEGAL_GENERATION",
        "INVALID_GROUP_ID",
        "REBALANCE_IN_PROGRESS",
        "UNKNOWN_MEMBER_ID",
    ),
    "LeaveGroup": ("FENCED_INSTANCE_ID", "INVALID_GROUP_ID", "UNKNOWN_MEMBER_ID"),
    "OffsetCommit": (
        "FENCED_INSTANCE_ID",
        "GROUP_ID_NOT_FOUND",
        "ILLEGAL_GENERATION",
        "OFFSET_METADATA_TOO_LARGE",
        "REBALANCE_IN_PROGRESS",
        "UNKNOWN_MEMBER_ID",
        "UNKNOWN_TOPIC_ID",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ),
    "OffsetFetch": ("UNKNOWN_TOPIC_ID",),
    "OffsetDelete": (
        "GROUP_ID_NOT_FOUND",
        "GROUP_SUBSCRIBED_TO_TOPIC",
        "NON_EMPTY_GROUP",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ),
    "DescribeGroups": ("GROUP_ID_NOT_FOUND",),
    "DeleteGroups": ("GROUP_ID_NOT_FOUND", "NON_EMPTY_GROUP"),
    "FindCoordinator": ("INVALID_REQUEST",),
    "Produce": (
        "CORRUPT_MESSAGE",
        "INVALID_PRODUCER_EPOCH",
        "INVALID_RECORD",
        "INVALID_REQUIRED_ACKS",
        "INVALID_TIMESTAMP",
        "INVALID_TOPIC_EXCEPTION",
        "MESSAGE_TOO_LARGE",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
        "UNKNOWN_TOPIC_ID",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNSUPPORTED_COMPRESSION_TYPE",
    ),
    "Fetch": (
        "FETCH_SESSION_ID_NOT_FOUND",
        "OFFSET_OUT_OF_RANGE",
        "UNKNOWN_LEADER_EPOCH",
        "UNKNOWN_TOPIC_ID",
        "UNKNOWN_TOPIC_OR_PARTITION",
    ),
}
"""Errors of Kafka that one broker without access control can return."""


def exchange(answer: str, version: int | None = None) -> Exchange:
    return Exchange(who="a", api="Heartbeat", version=version, asked={"x": 1}, answer=answer)


def test_a_recording_is_read_as_it_was_written(tmp_path: Path) -> None:
    deviating = Exchange(
        who="b",
        api="JoinGroup",
        version=9,
        asked=None,
        answer={"code": [1, None, "x"]},
        deviation=Deviation(because="a reason", fields=("answer.code", "*")),
    )
    expected = {"one": merge({None: [exchange("y"), deviating]}), "two": merge({0: [], 1: []})}
    path = tmp_path / "folder" / "recording.json"

    recordings.write(path, expected)

    assert recordings.read(path) == expected


def test_versions_with_equal_exchanges_are_stored_once() -> None:
    found_by_version: dict[int | None, list[Exchange]] = {
        0: [exchange("x")],
        1: [exchange("y")],
        2: [exchange("x")],
    }

    kept = merge(found_by_version)

    assert [run.versions for run in kept] == [(0, 2), (1,)]
    assert find_run(kept, 2) == (exchange("x"),)
    assert find_run(kept, 3) is None


def test_errors_are_found_at_every_depth() -> None:
    inner: Json = {"partitions": [{"error_code": "NOT_COORDINATOR"}]}

    found = list(errors_in({"error_code": "NONE", "topics": [inner]}))

    assert found == ["NONE", "NOT_COORDINATOR"]


def test_every_conversation_has_a_unique_name() -> None:
    names = [(each.file, each.sentence) for each in find_conversations()]

    assert names
    assert len(set(names)) == len(names)


def test_exactly_the_versions_of_every_conversation_are_recorded() -> None:
    kept = {
        (path.stem, sentence, version)
        for path in RECORDED.glob("*.json")
        for sentence, runs in recordings.read(path).items()
        for run in runs
        for version in run.versions
    }

    expected = {
        (each.file, each.sentence, version)
        for each in find_conversations()
        for version in each.versions
    }
    assert kept == expected


def test_every_served_version_of_every_api_is_covered() -> None:
    found_by_version = {(each.exchange.api, each.version) for each in find_recorded_exchanges()}

    apis = {key: find_api(key) for key in SERVED}
    not_covered = [
        (api.name, version)
        for key, api in apis.items()
        if api is not None
        for version in SERVED[key]
        if (api.name, version) not in found_by_version
    ]
    assert not not_covered


def test_every_known_error_is_covered() -> None:
    found_by_version = {
        (each.exchange.api, error)
        for each in find_recorded_exchanges()
        for error in errors_in(each.exchange.answer)
    }

    not_covered = [
        (api, error)
        for api, errors in NAMED_ERRORS.items()
        for error in errors
        if (api, error) not in found_by_version
    ]
    assert not not_covered


def test_every_difference_is_a_deviation_of_the_code() -> None:
    known = [
        deviation
        for path, text in find_texts()
        if path.startswith("src/") and path.endswith(".py")
        for deviation in find_deviations(text)
    ]

    unknown = [
        because
        for because in (*count_by_deviation(), ADDITIONAL_MESSAGE)
        if not any(because in deviation for deviation in known)
    ]
    assert not unknown


def test_the_page_shows_the_recordings() -> None:
    is_fresh = read("docs/reference/conversations.md") == page(VERSION)

    assert is_fresh, f"docs/reference/conversations.md is out of date; refresh it with: {REFRESH}"
