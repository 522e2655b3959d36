"""The source's options: those of Spark's own Kafka source, and a few of ours.

Pure. Option names are case-insensitive, as everywhere in Spark.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from functools import partial
from typing import Any, Final, TypeVar

from kohort.client.errors import ConfigurationError
from kohort.client.options import read_options
from kohort.pipeline.errors import BadSourceOption
from kohort.settings.readers import (
    did_you_mean,
    read_choice,
    read_flag,
    read_list,
    read_number,
)
from kohort.types import Millis, Offset, Partition, Topic, TopicPartition, value

T = TypeVar("T")

EARLIEST_OFFSET: Final = -2
LATEST_OFFSET: Final = -1
"""The log start and the log end in JSON options."""


class OffsetKind(StrEnum):
    """How offsets are given."""

    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed"
    OFFSETS = "offsets"
    TIMES = "times"


@value
class OffsetSpec:
    """Offsets of partitions: earliest, latest or committed, or as numbers, or by timestamps."""

    kind: OffsetKind
    numbers: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Offsets or timestamps by partition; offset -1 is the log end, -2 the log start."""
    time: Millis | None = None
    """One timestamp for all partitions."""
    is_latest_without_match: bool = False
    """If no record has the timestamp or a later one, use the log end instead of failing."""


class MembershipMode(StrEnum):
    GROUP = "group"
    """The query is a member of the group and reads the partitions assigned to it."""
    NONE = "none"
    """The query reads all partitions; the group only stores its offsets."""


class Reset(StrEnum):
    """Where to start a partition without a committed offset."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


@value
class SourceOptions:
    bootstrap_servers: str
    kafka: Mapping[str, str]
    """The options `kafka.*`, for the consumer, without that prefix."""
    topics: tuple[Topic, ...]
    pattern: str | None
    assigned: tuple[TopicPartition, ...]
    """Exactly one of these three is given."""
    group_id: str | None
    instance_id: str | None
    membership: MembershipMode
    starting: OffsetSpec
    ending: OffsetSpec
    reset: Reset
    rows_max: int | None
    partitions_min: int
    fail_on_data_loss: bool
    skips_malformed: bool
    """Whether batches that cannot be decoded are skipped, with a warning."""
    includes_headers: bool
    join_timeout_ms: Millis
    fetch_timeout_ms: Millis


_OURS: Final = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "maxOffsetsPerTrigger",
    "minPartitions",
    "failOnDataLoss",
    "skipMalformedBatches",
    "includeHeaders",
    "group.id",
    "group.instance.id",
    "membership",
    "auto.offset.reset",
    "joinTimeoutMs",
    "fetchTimeoutMs",
)

_ALIASES: Final = {
    "kafka.group.id": "group.id",
    "kafka.group.instance.id": "group.instance.id",
    "kafka.auto.offset.reset": "auto.offset.reset",
}

_REFUSED: Final = {
    "groupidprefix": "set group.id",
    "minoffsetspertrigger": "use a longer trigger interval",
    "maxtriggerdelay": "use a longer trigger interval",
    "kafkaconsumer.polltimeoutms": "use fetchTimeoutMs",
    "fetchoffset.numretries": "offsets are requested until kafka.default.api.timeout.ms is over",
    "fetchoffset.retryintervalms": "use kafka.retry.backoff.ms",
    "kafka.enable.auto.commit": "offsets are committed when Spark has made a batch durable",
    "kafka.key.deserializer": "keys are bytes; cast them in Spark",
    "kafka.value.deserializer": "values are bytes; cast them in Spark",
}

_KNOWN: Final = {name.lower(): name for name in _OURS}

_DEFAULT_JOIN_MS: Final = Millis(300_000)
_DEFAULT_FETCH_MS: Final = Millis(120_000)


def read_source_options(given: Mapping[str, str], *, is_streaming: bool) -> SourceOptions:
    """Raise BadSourceOption if an option is missing, unknown or contradicts another."""
    options = _Given(given)
    topics, pattern, assigned = _read_topics(options)
    group_id = options.take("group.id", str, None)
    instance_id = options.take("group.instance.id", str, None)
    membership = _read_membership(options, group_id, is_assigned=bool(assigned))
    if instance_id is not None and membership is MembershipMode.NONE:
        raise BadSourceOption("group.instance.id needs membership=group")
    starting = _read_offsets(
        options, "starting", _default_start(group_id, is_streaming=is_streaming)
    )
    ending = _read_offsets(options, "ending", OffsetKind.LATEST)
    _check_offsets(starting, ending, group_id, is_streaming=is_streaming)
    default_reset = Reset.LATEST if is_streaming else Reset.EARLIEST
    found = SourceOptions(
        bootstrap_servers=options.bootstrap_servers,
        kafka=options.kafka,
        topics=topics,
        pattern=pattern,
        assigned=assigned,
        group_id=group_id,
        instance_id=instance_id,
        membership=membership,
        starting=starting,
        ending=ending,
        reset=options.take("auto.offset.reset", _reset, default_reset),
        rows_max=options.take("maxOffsetsPerTrigger", _positive, None),
        partitions_min=options.take("minPartitions", _positive, 1),
        fail_on_data_loss=options.take("failOnDataLoss", read_flag, True),  # noqa: FBT003
        skips_malformed=options.take("skipMalformedBatches", read_flag, False),  # noqa: FBT003
        includes_headers=options.take("includeHeaders", read_flag, False),  # noqa: FBT003
        join_timeout_ms=Millis(options.take("joinTimeoutMs", _positive, _DEFAULT_JOIN_MS)),
        fetch_timeout_ms=Millis(options.take("fetchTimeoutMs", _positive, _DEFAULT_FETCH_MS)),
    )
    _check_kafka(found)
    return found


class _Given:
    """The given options by lower-case name."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._left: dict[str, str] = {}
        self.kafka: dict[str, str] = {}
        for name, text in given.items():
            self._sort(name.lower(), text)
        found = self.kafka.pop("bootstrap.servers", None)
        if not found:
            raise BadSourceOption(
                "kafka.bootstrap.servers is missing: set it to HOST:PORT of a broker"
            )
        self.bootstrap_servers = found

    def _sort(self, name: str, text: str) -> None:
        name = _ALIASES.get(name, name)
        if name in _REFUSED:
            raise BadSourceOption(f"there is no option {name}: {_REFUSED[name]}")
        if name.startswith("kafka."):
            self.kafka[name.removeprefix("kafka.")] = text
        elif name in _KNOWN:
            self._left[name] = text
        else:
            raise BadSourceOption(f"there is no option {name}{did_you_mean(name, _OURS)}")

    def has(self, name: str) -> bool:
        return name.lower() in self._left

    def take(self, name: str, read: Callable[[str], T], default: Any) -> Any:
        text = self._left.get(name.lower())
        if text is None:
            return default
        try:
            return read(text.strip())
        except (ValueError, TypeError, AttributeError) as error:
            raise BadSourceOption(f"{name} cannot be {text!r}: {error}") from error


def _read_topics(
    options: _Given,
) -> tuple[tuple[Topic, ...], str | None, tuple[TopicPartition, ...]]:
    given = [name for name in ("subscribe", "subscribePattern", "assign") if options.has(name)]
    if len(given) != 1:
        raise BadSourceOption(
            "choose topics with one of subscribe, subscribePattern or assign"
            + (f"; given are {' and '.join(given)}" if given else "")
        )
    return (
        options.take("subscribe", _topics, ()),
        options.take("subscribePattern", _pattern, None),
        options.take("assign", _assigned, ()),
    )


def _topics(text: str) -> tuple[Topic, ...]:
    names = tuple(map(Topic, read_list(text)))
    if not names:
        raise ValueError("it has no topic")
    return names


def _pattern(text: str) -> str:
    """The pattern must match the whole topic name, as in Spark's own source."""
    if not text:
        raise ValueError("it is empty")
    return rf"(?:{text})\Z"


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    found = json.loads(text)
    partitions = [
        TopicPartition(Topic(topic), Partition(int(number)))
        for topic, numbers in found.items()
        for number in numbers
    ]
    if not partitions:
        raise ValueError("it has no partition")
    return tuple(sorted(set(partitions)))


def _read_membership(options: _Given, group_id: str | None, *, is_assigned: bool) -> MembershipMode:
    default = MembershipMode.NONE if is_assigned or group_id is None else MembershipMode.GROUP
    mode: MembershipMode = options.take("membership", _membership, default)
    if mode is MembershipMode.GROUP and group_id is None:
        raise BadSourceOption("membership=group needs a group.id")
    if mode is MembershipMode.GROUP and is_assigned:
        raise BadSourceOption(
            "assign names fixed partitions, but a group assigns them: use subscribe"
        )
    return mode


def _default_start(group_id: str | None, *, is_streaming: bool) -> OffsetKind:
    if group_id is not None:
        return OffsetKind.COMMITTED
    return OffsetKind.LATEST if is_streaming else OffsetKind.EARLIEST


def _read_offsets(options: _Given, side: str, default: OffsetKind) -> OffsetSpec:
    """One timestamp takes precedence over many, those over offsets, as in Spark's own source."""
    is_latest = options.take(f"{side}OffsetsByTimestampStrategy", _strategy, side == "ending")
    time = options.take(f"{side}Timestamp", _not_negative, None)
    if time is not None:
        return OffsetSpec(
            kind=OffsetKind.TIMES, time=Millis(time), is_latest_without_match=is_latest
        )
    times = options.take(f"{side}OffsetsByTimestamp", _numbers, None)
    if times is not None:
        return OffsetSpec(kind=OffsetKind.TIMES, numbers=times, is_latest_without_match=is_latest)
    found: OffsetSpec = options.take(f"{side}Offsets", _offsets, OffsetSpec(kind=default))
    return found


def _strategy(text: str) -> bool:
    return read_choice(text, ("error", "latest")) == "latest"


def _offsets(text: str) -> OffsetSpec:
    if text.startswith("{"):
        return OffsetSpec(kind=OffsetKind.OFFSETS, numbers=_numbers(text))
    word = text.lower()
    if word not in (OffsetKind.EARLIEST, OffsetKind.LATEST, OffsetKind.COMMITTED):
        raise ValueError('earliest, latest, committed, or JSON such as {"orders": {"0": 23}}')
    return OffsetSpec(kind=OffsetKind(word))


def _numbers(text: str) -> Mapping[TopicPartition, int]:
    found = offsets_from_json(json.loads(text))
    if any(number < EARLIEST_OFFSET for number in found.values()):
        raise ValueError("an offset is at least 0, or -1 for the log end, or -2 for the log start")
    return found


def _check_offsets(
    starting: OffsetSpec, ending: OffsetSpec, group_id: str | None, *, is_streaming: bool
) -> None:
    if starting.kind is OffsetKind.COMMITTED and group_id is None:
        raise BadSourceOption("startingOffsets=committed needs a group.id")
    if ending.kind is OffsetKind.COMMITTED and group_id is None:
        raise BadSourceOption("endingOffsets=committed needs a group.id")
    if is_streaming and ending != OffsetSpec(kind=OffsetKind.LATEST):
        raise BadSourceOption("a stream has no end: endingOffsets is for batch queries")
    is_empty_start = (
        starting.kind is OffsetKind.LATEST or LATEST_OFFSET in starting.numbers.values()
    )
    if is_empty_start and not is_streaming:
        raise BadSourceOption(
            "a batch query that starts at the end reads nothing: see startingOffsets"
        )
    if ending.kind is OffsetKind.EARLIEST or EARLIEST_OFFSET in ending.numbers.values():
        raise BadSourceOption(
            "a batch query that ends at the beginning reads nothing: see endingOffsets"
        )


def _check_kafka(options: SourceOptions) -> None:
    """Fail on the driver, not in a task."""
    try:
        read_options([*consumer_config(options).items()])
    except ConfigurationError as error:
        raise BadSourceOption(f"kafka.*: {error}") from error


def consumer_config(options: SourceOptions) -> dict[str, object]:
    """The settings that all consumers of this source share."""
    return {
        "bootstrap.servers": options.bootstrap_servers,
        "client.id": "kohort-spark",
        # A misspelt topic must not be created by reading it.
        "allow.auto.create.topics": False,
        **options.kafka,
    }


def offsets_to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Offsets by topic and partition, as in Spark's JSON options and its checkpoint."""
    nested: dict[str, dict[str, int]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(number)] = int(offset)
    return nested


def offsets_from_json(nested: Mapping[str, Any]) -> dict[TopicPartition, Offset]:
    """The inverse; raises ValueError, TypeError or AttributeError for anything else."""
    offsets: dict[TopicPartition, Offset] = {}
    for topic, numbers in nested.items():
        for number, offset in numbers.items():
            if isinstance(offset, bool) or not isinstance(offset, int):
                raise TypeError(f"{offset!r} is not an offset")
            offsets[TopicPartition(Topic(topic), Partition(int(number)))] = Offset(offset)
    return offsets


_positive: Final = partial(read_number, minimum=1)
_not_negative: Final = partial(read_number, minimum=0)
_reset: Final = partial(read_choice, choices=Reset)
_membership: Final = partial(read_choice, choices=MembershipMode)
