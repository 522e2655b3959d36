"""The source's options: what they mean, and what is wrong with them."""

import pytest

from kohort.client.topic_partition import TopicPartition
from kohort.pipeline.errors import BadSourceOption
from kohort.pipeline.source.options import (
    Membership,
    Reset,
    SourceOptions,
    Where,
    Word,
    read_source_options,
)
from kohort.types import Millis, Partition, Topic

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def read(*, is_streaming: bool = True, **given: str) -> SourceOptions:
    return read_all(given, is_streaming=is_streaming)


def read_all(given: dict[str, str], *, is_streaming: bool = True) -> SourceOptions:
    names = {name.replace("__", "."): text for name, text in given.items()}
    return read_source_options({**SERVERS, "subscribe": "t", **names}, is_streaming=is_streaming)


def at(topic: str, number: int) -> TopicPartition:
    return TopicPartition(Topic(topic), Partition(number))


def test_a_query_without_a_group_begins_as_spark_s_own_does() -> None:
    assert read().starting == Where(word=Word.LATEST)
    assert read(is_streaming=False).starting == Where(word=Word.EARLIEST)
    assert read().membership is Membership.NONE


def test_a_query_with_a_group_begins_where_the_group_stands() -> None:
    options = read(group__id="etl")

    assert options.starting == Where(word=Word.COMMITTED)
    assert options.membership is Membership.GROUP
    assert options.reset is Reset.LATEST


def test_names_are_known_in_any_case() -> None:
    options = read_source_options(
        {"KAFKA.Bootstrap.Servers": "h:1", "SUBSCRIBE": "a, b", "MINPARTITIONS": "4"},
        is_streaming=True,
    )

    assert options.topics == (Topic("a"), Topic("b"))
    assert options.parts_min == 4


def test_a_group_may_be_told_as_kafka_s_option() -> None:
    assert read_all({"kafka.group.id": "etl"}).group_id == "etl"


def test_options_of_the_consumer_are_handed_on() -> None:
    assert read_all({"kafka.isolation.level": "read_committed"}).kafka == {
        "isolation.level": "read_committed"
    }


def test_partitions_may_be_named() -> None:
    given = {**SERVERS, "assign": '{"a": [1, 0], "b": [2]}', "group.id": "g"}

    options = read_source_options(given, is_streaming=True)

    assert options.assigned == (at("a", 0), at("a", 1), at("b", 2))
    assert options.membership is Membership.NONE


def test_offsets_and_times_may_be_given_for_each_partition() -> None:
    by_offset = read(startingOffsets='{"t": {"0": 5, "1": -2}}').starting
    by_time = read(startingOffsetsByTimestamp='{"t": {"0": 1000}}').starting
    at_once = read(startingTimestamp="1000", startingOffsets="earliest").starting

    assert by_offset == Where(word=Word.OFFSETS, numbers={at("t", 0): 5, at("t", 1): -2})
    assert by_time == Where(word=Word.TIMES, numbers={at("t", 0): 1000})
    assert at_once == Where(word=Word.TIMES, time=Millis(1000))


def test_a_pattern_matches_whole_names() -> None:
    options = read_source_options({**SERVERS, "subscribePattern": "a|b.*"}, is_streaming=True)

    assert options.pattern == r"(?:a|b.*)\Z"


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"subscribe": "t"}, "kafka.bootstrap.servers is missing"),
        (SERVERS, "subscribe, subscribePattern or assign"),
        ({**SERVERS, "subscribe": "t", "assign": "{}"}, "subscribe and assign"),
        ({**SERVERS, "subscribe": " , "}, "names no topic"),
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
        ({**SERVERS, "subscribe": "t", "maxOffsetsPerTrigger": "0"}, "at least 1"),
        ({**SERVERS, "subscribe": "t", "minPartitions": "many"}, "minPartitions cannot be"),
        ({**SERVERS, "subscribe": "t", "failOnDataLoss": "maybe"}, "neither true nor false"),
        ({**SERVERS, "subscribe": "t", "startingTimestamp": "-5"}, "not negative"),
        ({**SERVERS, "subscribe": "t", "endingOffsets": "earliest"}, "a stream has no end"),
    ],
)
def test_what_is_wrong_is_said(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadSourceOption, match=complaint):
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
