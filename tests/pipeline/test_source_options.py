"""The source's options: their defaults, their forms and their errors."""

import pytest

from kohort.pipeline.errors import BadSourceOption
from kohort.pipeline.source.options import (
    MembershipMode,
    OffsetKind,
    OffsetSpec,
    Reset,
    SourceOptions,
    read_source_options,
)
from kohort.types import Millis, Partition, Topic, TopicPartition

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def read(*, is_streaming: bool = True, **given: str) -> SourceOptions:
    return read_all(given, is_streaming=is_streaming)


def read_all(given: dict[str, str], *, is_streaming: bool = True) -> SourceOptions:
    names = {name.replace("__", "."): text for name, text in given.items()}
    return read_source_options({**SERVERS, "subscribe": "t", **names}, is_streaming=is_streaming)


def at(topic: str, number: int) -> TopicPartition:
    return TopicPartition(Topic(topic), Partition(number))


def test_a_query_without_a_group_starts_like_spark_s_own_source() -> None:
    assert read().starting == OffsetSpec(kind=OffsetKind.LATEST)
    assert read(is_streaming=False).starting == OffsetSpec(kind=OffsetKind.EARLIEST)
    assert read().membership is MembershipMode.NONE


def test_a_query_with_a_group_starts_at_the_committed_offsets() -> None:
    options = read(group__id="etl")

    assert options.starting == OffsetSpec(kind=OffsetKind.COMMITTED)
    assert options.membership is MembershipMode.GROUP
    assert options.reset is Reset.LATEST


def test_option_names_are_case_insensitive() -> None:
    options = read_source_options(
        {"KAFKA.Bootstrap.Servers": "h:1", "SUBSCRIBE": "a, b", "MINPARTITIONS": "4"},
        is_streaming=True,
    )

    assert options.topics == (Topic("a"), Topic("b"))
    assert options.partitions_min == 4


def test_the_group_may_be_given_as_kafka_group_id() -> None:
    assert read_all({"kafka.group.id": "etl"}).group_id == "etl"


def test_kafka_options_are_passed_to_the_consumer() -> None:
    assert read_all({"kafka.isolation.level": "read_committed"}).kafka == {
        "isolation.level": "read_committed"
    }


def test_assign_names_partitions() -> None:
    given = {**SERVERS, "assign": '{"a": [1, 0], "b": [2]}', "group.id": "g"}

    options = read_source_options(given, is_streaming=True)

    assert options.assigned == (at("a", 0), at("a", 1), at("b", 2))
    assert options.membership is MembershipMode.NONE


def test_offsets_and_timestamps_may_be_given_for_each_partition() -> None:
    by_offset = read(startingOffsets='{"t": {"0": 5, "1": -2}}').starting
    by_time = read(startingOffsetsByTimestamp='{"t": {"0": 1000}}').starting
    at_once = read(startingTimestamp="1000", startingOffsets="earliest").starting

    assert by_offset == OffsetSpec(kind=OffsetKind.OFFSETS, numbers={at("t", 0): 5, at("t", 1): -2})
    assert by_time == OffsetSpec(kind=OffsetKind.TIMES, numbers={at("t", 0): 1000})
    assert at_once == OffsetSpec(kind=OffsetKind.TIMES, time=Millis(1000))


def test_a_pattern_matches_whole_names() -> None:
    options = read_source_options({**SERVERS, "subscribePattern": "a|b.*"}, is_streaming=True)

    assert options.pattern == r"(?:a|b.*)\Z"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"subscribe": "t"}, "kafka.bootstrap.servers is missing"),
        (SERVERS, "subscribe, subscribePattern or assign"),
        ({**SERVERS, "subscribe": "t", "assign": "{}"}, "subscribe and assign"),
        ({**SERVERS, "subscribe": " , "}, "has no topic"),
        ({**SERVERS, "assign": "[1"}, "assign cannot be"),
        ({**SERVERS, "subscribe": "t", "startingOffset": "earliest"}, "startingOffsets?"),
        ({**SERVERS, "subscribe": "t", "groupIdPrefix": "x"}, "group.id"),
        ({**SERVERS, "subscribe": "t", "kafka.enable.auto.commit": "true"}, "durable"),
        ({**SERVERS, "subscribe": "t", "kafka.session.timeout.ms": "soon"}, "session.timeout.ms"),
        ({**SERVERS, "subscribe": "t", "kafka.no.such": "1"}, "no.such"),
        ({**SERVERS, "subscribe": "t", "startingOffsets": "now"}, "earliest, latest, committed"),
        ({**SERVERS, "subscribe": "t", "startingOffsets": '{"t": {"0": -3}}'}, "at least 0"),
        ({**SERVERS, "subscribe": "t", "startingOffsets": "committed"}, "needs a group.id"),
        ({**SERVERS, "subscribe": "t", "membership": "group"}, "needs a group.id"),
        ({**SERVERS, "subscribe": "t", "group.id": "g", "membership": "x"}, "group, none"),
        ({**SERVERS, "assign": '{"t":[0]}', "group.id": "g", "membership": "group"}, "subscribe"),
        (
            {
                **SERVERS,
                "subscribe": "t",
                "group.id": "g",
                "membership": "none",
                "group.instance.id": "i",
            },
            "membership=group",
        ),
        ({**SERVERS, "subscribe": "t", "auto.offset.reset": "first"}, "earliest, latest, none"),
        ({**SERVERS, "subscribe": "t", "maxOffsetsPerTrigger": "0"}, "less than 1"),
        ({**SERVERS, "subscribe": "t", "minPartitions": "many"}, "minPartitions cannot be"),
        ({**SERVERS, "subscribe": "t", "failOnDataLoss": "maybe"}, "neither true nor false"),
        ({**SERVERS, "subscribe": "t", "startingTimestamp": "-5"}, "less than 0"),
        ({**SERVERS, "subscribe": "t", "endingOffsets": "earliest"}, "a stream has no end"),
    ],
)
def test_a_wrong_option_is_refused_with_its_name(given: dict[str, str], reason: str) -> None:
    with pytest.raises(BadSourceOption, match=reason):
        read_source_options(given, is_streaming=True)


@pytest.mark.parametrize(
    "given",
    [
        {"startingOffsets": "latest"},
        {"endingOffsets": "earliest"},
        {"startingOffsets": '{"t": {"0": -1}}'},
        {"endingOffsets": '{"t": {"0": -2}}'},
    ],
)
def test_a_batch_that_would_read_nothing_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(BadSourceOption, match="reads nothing"):
        read_all(given, is_streaming=False)
