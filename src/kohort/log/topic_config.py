"""Topic settings: a table of all topic settings of Apache Kafka 4.3, and their parser.

The table has the type, default, bounds and effect of each setting. The documentation and
DescribeConfigs use it. Overrides and defaults are strings by Kafka's names; `parse_settings`
converts them.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, NoReturn

from kohort.log.errors import RequestRejected
from kohort.settings.readers import (
    did_you_mean,
    read_choice,
    read_decimal,
    read_flag,
    read_number,
)
from kohort.types import ErrorCode, Millis, value
from kohort.wire.batch import TimestampType

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1
_DAY: Final = 24 * 60 * 60_000


class SettingType(IntEnum):
    """The type of a setting, with the numbers that DescribeConfigs uses."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@value
class SettingDefinition:
    name: str
    kind: SettingType
    default: str
    meaning: str
    minimum: float = -_LONG_MAX - 1
    maximum: float = _LONG_MAX
    choices: tuple[str, ...] = ()
    """The valid values of a STRING, or of the elements of a LIST."""
    has_effect: bool = True
    """False for settings that are only validated and stored, for tools that set them."""
    is_internal: bool = False
    """Not shown to clients; exists for tests, as in Kafka."""


def _long(name: str, default: int, meaning: str, *, minimum: int = 0) -> SettingDefinition:
    return SettingDefinition(
        name=name, kind=SettingType.LONG, default=str(default), meaning=meaning, minimum=minimum
    )


def _int(
    name: str, default: int, meaning: str, *, minimum: int = 0, maximum: int = _INT_MAX
) -> SettingDefinition:
    return SettingDefinition(
        name=name,
        kind=SettingType.INT,
        default=str(default),
        meaning=meaning,
        minimum=minimum,
        maximum=maximum,
    )


def _no_effect(
    name: str,
    kind: SettingType,
    default: str,
    meaning: str,
    *,
    minimum: float = 0,
    maximum: float = 0,
) -> SettingDefinition:
    highest = maximum or (_INT_MAX if kind is SettingType.INT else _LONG_MAX)
    return SettingDefinition(
        name=name,
        kind=kind,
        default=default,
        meaning=meaning,
        minimum=minimum,
        maximum=highest,
        has_effect=False,
    )


_ONE_NODE: Final = "No effect: partitions have no replicas."
_AS_PRODUCED: Final = "No effect: batches stay as their producers compressed them."
_NOT_TIERED: Final = "No effect: there is no tiered storage."

_SETTINGS: Final = (
    SettingDefinition(
        name="cleanup.policy",
        kind=SettingType.LIST,
        default="delete",
        choices=("compact", "delete"),
        meaning="How old records are removed: `delete` removes whole segments by age and size, "
        "`compact` keeps only the last record of each key. With an empty list none are removed.",
    ),
    # DEVIATION: if this names a codec, Kafka recompresses batches. Here it is only stored.
    SettingDefinition(
        name="compression.type",
        kind=SettingType.STRING,
        default="producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        meaning=_AS_PRODUCED,
        has_effect=False,
    ),
    _no_effect(
        "compression.gzip.level", SettingType.INT, "-1", _AS_PRODUCED, minimum=-1, maximum=9
    ),
    _no_effect("compression.lz4.level", SettingType.INT, "9", _AS_PRODUCED, minimum=1, maximum=17),
    _no_effect(
        "compression.zstd.level", SettingType.INT, "3", _AS_PRODUCED, minimum=-131072, maximum=22
    ),
    _long(
        "delete.retention.ms",
        _DAY,
        "How long a tombstone is kept after the first compaction that reads it, so that slow "
        "consumers see the deletion.",
    ),
    _no_effect(
        "file.delete.delay.ms",
        SettingType.LONG,
        "60000",
        "No effect: files are removed immediately.",
    ),
    _no_effect(
        "flush.messages",
        SettingType.LONG,
        str(_LONG_MAX),
        "No effect: fsync is a setting of the node.",
        minimum=1,
    ),
    _no_effect(
        "flush.ms", SettingType.LONG, str(_LONG_MAX), "No effect: fsync is a setting of the node."
    ),
    _no_effect("follower.replication.throttled.replicas", SettingType.LIST, "", _ONE_NODE),
    _int(
        "index.interval.bytes",
        4096,
        "The approximate number of bytes between two index entries.",
    ),
    # Kafka's tests use it for segments below 1 MiB.
    SettingDefinition(
        name="internal.segment.bytes",
        kind=SettingType.INT,
        default="0",
        meaning="Overrides segment.bytes unless it is 0.",
        minimum=0,
        maximum=_INT_MAX,
        is_internal=True,
    ),
    _no_effect("leader.replication.throttled.replicas", SettingType.LIST, "", _ONE_NODE),
    _no_effect("local.retention.bytes", SettingType.LONG, "-2", _NOT_TIERED, minimum=-2),
    _no_effect("local.retention.ms", SettingType.LONG, "-2", _NOT_TIERED, minimum=-2),
    _long(
        "max.compaction.lag.ms",
        _LONG_MAX,
        "The longest time a record may wait for compaction, regardless of the dirty ratio.",
        minimum=1,
    ),
    _int("max.message.bytes", 1_048_588, "The maximum size of a batch, after compression."),
    _long(
        "message.timestamp.after.max.ms",
        3_600_000,
        "How far in the future a producer's timestamp may be.",
    ),
    _long(
        "message.timestamp.before.max.ms",
        _LONG_MAX,
        "How far in the past a producer's timestamp may be. With any value but the default, every "
        "record is decoded.",
    ),
    SettingDefinition(
        name="message.timestamp.type",
        kind=SettingType.STRING,
        default="CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        meaning="Whether timestamps are set by the producer or by the node.",
    ),
    SettingDefinition(
        name="min.cleanable.dirty.ratio",
        kind=SettingType.DOUBLE,
        default="0.5",
        meaning="The minimum ratio of uncompacted bytes for a compaction.",
        minimum=0,
        maximum=1,
    ),
    _long("min.compaction.lag.ms", 0, "How long a record is not compacted."),
    _no_effect("min.insync.replicas", SettingType.INT, "1", _ONE_NODE, minimum=1),
    _no_effect(
        "preallocate", SettingType.BOOLEAN, "false", "No effect: files are not preallocated."
    ),
    _no_effect("remote.log.copy.disable", SettingType.BOOLEAN, "false", _NOT_TIERED),
    _no_effect("remote.log.delete.on.disable", SettingType.BOOLEAN, "false", _NOT_TIERED),
    SettingDefinition(
        name="remote.storage.enable",
        kind=SettingType.BOOLEAN,
        default="false",
        meaning="Must be false: there is no tiered storage.",
    ),
    _long(
        "retention.bytes",
        -1,
        "The size of a partition above which its oldest segments are deleted; -1 for no limit.",
        minimum=-_LONG_MAX - 1,
    ),
    _long(
        "retention.ms",
        7 * _DAY,
        "A segment is deleted when its latest record is older than this; -1 for never.",
        minimum=-1,
    ),
    _int(
        "segment.bytes",
        1 << 30,
        "The maximum size of a segment file. Only whole segments are deleted or compacted, and "
        "the active segment is not compacted.",
        minimum=1 << 20,
    ),
    _int("segment.index.bytes", 10 << 20, "The maximum size of a segment's index file.", minimum=4),
    # DEVIATION: Kafka subtracts a random part of this from segment.ms to spread disk writes.
    _no_effect("segment.jitter.ms", SettingType.LONG, "0", "No effect: segments roll on time."),
    _long(
        "segment.ms",
        7 * _DAY,
        "The log rolls when a batch is later than the segment's first batch by more than this.",
        minimum=1,
    ),
    _no_effect("unclean.leader.election.enable", SettingType.BOOLEAN, "false", _ONE_NODE),
)

SETTINGS: Final = {setting.name: setting for setting in _SETTINGS}

_NO_DEFAULTS: Final[Mapping[str, str]] = {}


@value
class TopicSettings:
    """The settings that the log uses, parsed."""

    is_compacted: bool
    """cleanup.policy contains `compact`."""
    has_retention: bool
    """cleanup.policy contains `delete`."""
    delete_retention_ms: Millis
    index_interval_bytes: int
    max_compaction_lag_ms: Millis
    max_message_bytes: int
    message_timestamp_after_max_ms: Millis
    message_timestamp_before_max_ms: Millis
    message_timestamp_type: TimestampType
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: Millis
    retention_bytes: int
    retention_ms: Millis
    segment_bytes: int
    segment_index_bytes: int
    segment_ms: Millis


def parse_settings(
    overrides: Mapping[str, str], defaults: Mapping[str, str] = _NO_DEFAULTS
) -> TopicSettings:
    """A topic's overrides take precedence over the node's defaults, and those over Kafka's.

    Raises RequestRejected with INVALID_CONFIG for an unknown name or an invalid value.
    """
    for name in (*defaults, *overrides):
        _get_setting(name)
    texts = {name: setting.default for name, setting in SETTINGS.items()} | {
        **defaults,
        **overrides,
    }
    numbers = {name: parse_value(SETTINGS[name], text) for name, text in texts.items()}
    if numbers["remote.storage.enable"]:
        _reject("remote.storage.enable", "true", "there is no tiered storage")
    lag_min, lag_max = numbers["min.compaction.lag.ms"], numbers["max.compaction.lag.ms"]
    if lag_min > lag_max:
        _reject("min.compaction.lag.ms", str(lag_min), f"max.compaction.lag.ms is {lag_max}")
    policy = _split_list(texts["cleanup.policy"])
    segment_ms, segment_bytes = numbers["segment.ms"], numbers["internal.segment.bytes"]
    if "compact" in policy:
        # Otherwise records could wait longer than max.compaction.lag.ms in the active segment.
        segment_ms = min(segment_ms, lag_max)
    return TopicSettings(
        is_compacted="compact" in policy,
        has_retention="delete" in policy,
        delete_retention_ms=Millis(int(numbers["delete.retention.ms"])),
        index_interval_bytes=int(numbers["index.interval.bytes"]),
        max_compaction_lag_ms=Millis(int(lag_max)),
        max_message_bytes=int(numbers["max.message.bytes"]),
        message_timestamp_after_max_ms=Millis(int(numbers["message.timestamp.after.max.ms"])),
        message_timestamp_before_max_ms=Millis(int(numbers["message.timestamp.before.max.ms"])),
        message_timestamp_type=_TIMESTAMP_TYPES[texts["message.timestamp.type"].strip()],
        min_cleanable_dirty_ratio=numbers["min.cleanable.dirty.ratio"],
        min_compaction_lag_ms=Millis(int(lag_min)),
        retention_bytes=int(numbers["retention.bytes"]),
        retention_ms=Millis(int(numbers["retention.ms"])),
        segment_bytes=int(segment_bytes or numbers["segment.bytes"]),
        segment_index_bytes=int(numbers["segment.index.bytes"]),
        segment_ms=Millis(int(segment_ms)),
    )


_TIMESTAMP_TYPES: Final = {
    "CreateTime": TimestampType.CREATE_TIME,
    "LogAppendTime": TimestampType.LOG_APPEND_TIME,
}


def parse_value(setting: SettingDefinition, text: str) -> float:
    """Validate a value. Returns a number as it is, a boolean as 1 or 0, and other types as 0."""
    try:
        match setting.kind:
            case SettingType.INT | SettingType.LONG:
                return read_number(text, int(setting.minimum), int(setting.maximum))
            case SettingType.DOUBLE:
                return read_decimal(text, setting.minimum, setting.maximum)
            case SettingType.BOOLEAN:
                return read_flag(text)
            case SettingType.STRING:
                read_choice(text.strip(), setting.choices)
            case SettingType.LIST:
                for part in _split_list(text) if setting.choices else ():
                    read_choice(part, setting.choices)
    except ValueError as error:
        _reject(setting.name, text, str(error))
    return 0


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text.strip() else ()


def _get_setting(name: str) -> SettingDefinition:
    setting = SETTINGS.get(name)
    if setting is None:
        reason = f"unknown topic setting {name!r}{did_you_mean(name, SETTINGS)}"
        raise RequestRejected(ErrorCode.INVALID_CONFIG, reason)
    return setting


def _reject(name: str, text: str, reason: str) -> NoReturn:
    raise RequestRejected(ErrorCode.INVALID_CONFIG, f"{name}={text}: {reason}")
