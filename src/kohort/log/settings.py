"""A topic's settings: overrides and defaults are strings by Kafka's names, what comes out is typed.

The names and their bounds are in settings_table.
"""

import difflib
from collections.abc import Mapping
from typing import Final, NoReturn

from kohort.log.errors import Refused
from kohort.log.settings_table import SETTINGS, Kind, Setting
from kohort.types import ErrorCode, Millis, value
from kohort.wire.batch import TimestampType

_NOTHING: Final[Mapping[str, str]] = {}


@value
class TopicSettings:
    """What the log itself acts on. The rest is checked, and kept as it came."""

    is_compacted: bool
    is_deleted: bool
    """Whether old segments go by age and size."""
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
    overrides: Mapping[str, str], defaults: Mapping[str, str] = _NOTHING
) -> TopicSettings:
    """A topic's own values where it has any, else the node's defaults, else Kafka's.

    Raises Refused with INVALID_CONFIG for an unknown name or a value that cannot be.
    """
    for name in (*defaults, *overrides):
        _get_setting(name)
    texts = {name: setting.default for name, setting in SETTINGS.items()} | {
        **defaults,
        **overrides,
    }
    numbers = {name: parse_value(SETTINGS[name], text) for name, text in texts.items()}
    if numbers["remote.storage.enable"]:
        _refuse("remote.storage.enable", "true", "there is no tiered storage")
    lag_min, lag_max = numbers["min.compaction.lag.ms"], numbers["max.compaction.lag.ms"]
    if lag_min > lag_max:
        _refuse("min.compaction.lag.ms", str(lag_min), f"max.compaction.lag.ms is {lag_max}")
    policy = _parts(texts["cleanup.policy"])
    segment_ms, segment_bytes = numbers["segment.ms"], numbers["internal.segment.bytes"]
    if "compact" in policy:
        # Otherwise records could wait in the active segment for longer than they may.
        segment_ms = min(segment_ms, lag_max)
    return TopicSettings(
        is_compacted="compact" in policy,
        is_deleted="delete" in policy,
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


def parse_value(setting: Setting, text: str) -> float:
    """The number a text stands for, 1 or 0 for a boolean, 0 for words; checked in any case."""
    match setting.kind:
        case Kind.INT | Kind.LONG:
            return _number(setting, text, int)
        case Kind.DOUBLE:
            return _number(setting, text, float)
        case Kind.BOOLEAN:
            return _choose(setting, text.strip().lower(), ("false", "true"))
        case Kind.STRING:
            _choose(setting, text.strip(), setting.choices)
        case Kind.LIST:
            for part in _parts(text) if setting.choices else ():
                _choose(setting, part, setting.choices)
    return 0


def _number(setting: Setting, text: str, convert: type[int] | type[float]) -> float:
    try:
        # Python would also take 1_000, and digits of other scripts.
        number = convert(text if text.isascii() and "_" not in text else "")
    except ValueError:
        kind = setting.kind.name.lower()
        _refuse(setting.name, text, f"it is no number of type {kind}")
    if not setting.minimum <= number <= setting.maximum:
        bounds = f"it must be between {setting.minimum} and {setting.maximum}"
        _refuse(setting.name, text, bounds)
    return number


def _choose(setting: Setting, text: str, choices: tuple[str, ...]) -> int:
    if text not in choices:
        _refuse(setting.name, text, f"it must be one of {', '.join(choices)}")
    return choices.index(text)


def _parts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text.strip() else ()


def _get_setting(name: str) -> Setting:
    setting = SETTINGS.get(name)
    if setting is None:
        near = difflib.get_close_matches(name, SETTINGS, n=1, cutoff=0.0)
        reason = f"there is no topic setting {name!r}; the nearest is {near[0]!r}"
        raise Refused(ErrorCode.INVALID_CONFIG, reason)
    return setting


def _refuse(name: str, text: str, reason: str) -> NoReturn:
    raise Refused(ErrorCode.INVALID_CONFIG, f"{name}={text}: {reason}")
