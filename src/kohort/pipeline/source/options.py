"""The source's options: names that Spark's own Kafka source has, and a few that only ours has.

Pure. Spark does not tell upper from lower case in them, so neither do we.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import field
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Final, TypeVar

from kohort.client.errors import BadOption
from kohort.client.options import read_options
from kohort.client.topic_partition import TopicPartition
from kohort.pipeline.errors import BadSourceOption
from kohort.pipeline.source.stream_offset import unnest
from kohort.types import Millis, Partition, Topic, value

T = TypeVar("T")

EARLIEST_OFFSET: Final = -2
LATEST_OFFSET: Final = -1
"""What these two are called where offsets are numbers."""


class Word(StrEnum):
    """How a place is told."""

    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed"
    OFFSETS = "offsets"
    TIMES = "times"


@value
class Where:
    """Places in partitions: by a word, by numbers, or by times."""

    word: Word
    numbers: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Offsets or times, for each partition; offsets may be -1, the end, or -2, the beginning."""
    time: Millis | None = None
    """One for all of them."""
    is_latest_without_match: bool = False
    """Whether a time after all records means the end, and not an error."""


class Membership(StrEnum):
    GROUP = "group"
    """A member like any other: the group's partitions are shared out."""
    NONE = "none"
    """All partitions are read; the group only keeps how far."""


class Reset(StrEnum):
    """Where to begin what the group has never committed."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


@value
class SourceOptions:
    bootstrap_servers: str
    kafka: Mapping[str, str]
    """All that were given as `kafka.*`, for the consumer, without that prefix."""
    topics: tuple[Topic, ...]
    pattern: str | None
    assigned: tuple[TopicPartition, ...]
    """Just one of these three is given."""
    group_id: str | None
    instance_id: str | None
    membership: Membership
    starting: Where
    ending: Where
    reset: Reset
    rows_max: int | None
    parts_min: int
    fail_on_data_loss: bool
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
    "groupidprefix": "give the group's whole name as group.id",
    "minoffsetspertrigger": "let a longer trigger interval gather more rows",
    "maxtriggerdelay": "let a longer trigger interval gather more rows",
    "kafkaconsumer.polltimeoutms": "it is called fetchTimeoutMs here",
    "fetchoffset.numretries": "offsets are asked for until kafka.default.api.timeout.ms is over",
    "fetchoffset.retryintervalms": "it is called kafka.retry.backoff.ms here",
    "kafka.enable.auto.commit": "offsets are committed when Spark has made a batch durable",
    "kafka.key.deserializer": "keys are bytes; cast them in Spark",
    "kafka.value.deserializer": "values are bytes; cast them in Spark",
}

_KNOWN: Final = {name.lower(): name for name in _OURS}

_DEFAULT_JOIN_MS: Final = Millis(300_000)
_DEFAULT_FETCH_MS: Final = Millis(120_000)


def read_source_options(given: Mapping[str, str], *, is_streaming: bool) -> SourceOptions:
    """BadSourceOption where something is missing, unknown or contradictory."""
    options = _Given(given)
    topics, pattern, assigned = _read_wish(options)
    group_id = options.take("group.id", str, None)
    instance_id = options.take("group.instance.id", str, None)
    membership = _read_membership(options, group_id, is_assigned=bool(assigned))
    if instance_id is not None and membership is Membership.NONE:
        raise BadSourceOption("group.instance.id is for members: it needs membership=group")
    starting = _read_where(options, "starting", _default_start(group_id, is_streaming=is_streaming))
    ending = _read_where(options, "ending", Word.LATEST)
    _check_places(starting, ending, group_id, is_streaming=is_streaming)
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
        reset=options.take("auto.offset.reset", Reset, default_reset),
        rows_max=options.take("maxOffsetsPerTrigger", _positive, None),
        parts_min=options.take("minPartitions", _positive, 1),
        fail_on_data_loss=options.take("failOnDataLoss", _flag, True),  # noqa: FBT003
        includes_headers=options.take("includeHeaders", _flag, False),  # noqa: FBT003
        join_timeout_ms=Millis(options.take("joinTimeoutMs", _positive, _DEFAULT_JOIN_MS)),
        fetch_timeout_ms=Millis(options.take("fetchTimeoutMs", _positive, _DEFAULT_FETCH_MS)),
    )
    _check_kafka(found)
    return found


class _Given:
    """Options as they were given, each taken once and checked."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._left: dict[str, str] = {}
        self.kafka: dict[str, str] = {}
        for name, text in given.items():
            self._sort(name.lower(), text)
        found = self.kafka.pop("bootstrap.servers", None)
        if not found:
            raise BadSourceOption(
                "kafka.bootstrap.servers is missing: say where a broker is, as HOST:PORT"
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
            close = get_close_matches(name, _KNOWN, n=1)
            hint = f"; did you mean {_KNOWN[close[0]]}?" if close else ""
            raise BadSourceOption(f"there is no option {name}{hint}")

    def has(self, name: str) -> bool:
        return name.lower() in self._left

    def take(self, name: str, read: Callable[[str], T], default: Any) -> Any:
        text = self._left.get(name.lower())
        if text is None:
            return default
        try:
            return read(text.strip())
        except (ValueError, TypeError, AttributeError) as error:
            raise BadSourceOption(f"{name} cannot be {text!r}: {_why(error)}") from error


def _why(error: Exception) -> str:
    """Enums do not say what they would take."""
    text = str(error)
    for kind in (Membership, Reset):
        if kind.__name__ in text:
            return f"one of {', '.join(kind)}"
    return text


def _read_wish(
    options: _Given,
) -> tuple[tuple[Topic, ...], str | None, tuple[TopicPartition, ...]]:
    given = [name for name in ("subscribe", "subscribePattern", "assign") if options.has(name)]
    if len(given) != 1:
        raise BadSourceOption(
            "say what to read with one of subscribe, subscribePattern or assign"
            + (f"; not with {' and '.join(given)}" if given else "")
        )
    return (
        options.take("subscribe", _topics, ()),
        options.take("subscribePattern", _pattern, None),
        options.take("assign", _assigned, ()),
    )


def _topics(text: str) -> tuple[Topic, ...]:
    names = tuple(Topic(name.strip()) for name in text.split(",") if name.strip())
    if not names:
        raise ValueError("it names no topic")
    return names


def _pattern(text: str) -> str:
    """A name must match from its beginning to its end, as in Spark's own source."""
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
        raise ValueError("it names no partition")
    return tuple(sorted(set(partitions)))


def _read_membership(options: _Given, group_id: str | None, *, is_assigned: bool) -> Membership:
    natural = Membership.NONE if is_assigned or group_id is None else Membership.GROUP
    told: Membership = options.take("membership", Membership, natural)
    if told is Membership.GROUP and group_id is None:
        raise BadSourceOption("membership=group needs a group.id")
    if told is Membership.GROUP and is_assigned:
        raise BadSourceOption("assign names partitions, which a group would share out: subscribe")
    return told


def _default_start(group_id: str | None, *, is_streaming: bool) -> Word:
    if group_id is not None:
        return Word.COMMITTED
    return Word.LATEST if is_streaming else Word.EARLIEST


def _read_where(options: _Given, side: str, default: Word) -> Where:
    """A single time wins over times, and these win over offsets, as in Spark's own source."""
    is_latest = options.take(f"{side}OffsetsByTimestampStrategy", _strategy, side == "ending")
    time = options.take(f"{side}Timestamp", _not_negative, None)
    if time is not None:
        return Where(word=Word.TIMES, time=Millis(time), is_latest_without_match=is_latest)
    times = options.take(f"{side}OffsetsByTimestamp", _numbers, None)
    if times is not None:
        return Where(word=Word.TIMES, numbers=times, is_latest_without_match=is_latest)
    found: Where = options.take(f"{side}Offsets", _where, Where(word=default))
    return found


def _strategy(text: str) -> bool:
    if text not in ("error", "latest"):
        raise ValueError("neither error nor latest")
    return text == "latest"


def _where(text: str) -> Where:
    if text.startswith("{"):
        return Where(word=Word.OFFSETS, numbers=_numbers(text))
    word = text.lower()
    if word not in (Word.EARLIEST, Word.LATEST, Word.COMMITTED):
        raise ValueError('earliest, latest, committed, or JSON such as {"orders": {"0": 23}}')
    return Where(word=Word(word))


def _numbers(text: str) -> Mapping[TopicPartition, int]:
    found = unnest(json.loads(text))
    if any(number < EARLIEST_OFFSET for number in found.values()):
        raise ValueError("an offset is at least 0, or -1 for the end, or -2 for the beginning")
    return found


def _check_places(
    starting: Where, ending: Where, group_id: str | None, *, is_streaming: bool
) -> None:
    if starting.word is Word.COMMITTED and group_id is None:
        raise BadSourceOption("startingOffsets=committed needs a group.id")
    if ending.word is Word.COMMITTED and group_id is None:
        raise BadSourceOption("endingOffsets=committed needs a group.id")
    if is_streaming and ending != Where(word=Word.LATEST):
        raise BadSourceOption("a stream has no end: endingOffsets is for batch queries")
    if not is_streaming and starting.word is Word.LATEST:
        raise BadSourceOption(
            "a batch query that starts at the end reads nothing: see startingOffsets"
        )
    if not is_streaming and ending.word is Word.EARLIEST:
        raise BadSourceOption(
            "a batch query that ends at the beginning reads nothing: see endingOffsets"
        )
    if LATEST_OFFSET in starting.numbers.values() and not is_streaming:
        raise BadSourceOption(
            "a batch query that starts at the end reads nothing: see startingOffsets"
        )
    if EARLIEST_OFFSET in ending.numbers.values():
        raise BadSourceOption(
            "a batch query that ends at the beginning reads nothing: see endingOffsets"
        )


def _check_kafka(options: SourceOptions) -> None:
    """Now, and on the driver, rather than in some task."""
    try:
        read_options([*consumer_config(options).items()])
    except BadOption as error:
        raise BadSourceOption(f"kafka.*: {error}") from error


def consumer_config(options: SourceOptions) -> dict[str, object]:
    """What every consumer of this source has in common."""
    return {
        "bootstrap.servers": options.bootstrap_servers,
        "client.id": "kohort-spark",
        # Reading must not make topics that somebody has misspelt.
        "allow.auto.create.topics": False,
        **options.kafka,
    }


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("at least 1")
    return number


def _not_negative(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError("not negative")
    return number


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("neither true nor false")
    return text.lower() == "true"
