"""The node's settings: Kafka's own names, each with its default, its meaning and its reader.

SETTINGS is the whole truth: `kohort serve --help`, the docs and DescribeConfigs are made from it.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from kohort.coordinator.limits import Limits
from kohort.types import Millis, value

_MINUTE: Final = 60_000
_DAY: Final = 24 * 60 * _MINUTE


class BadSetting(Exception):
    """A setting that does not exist or cannot have this value; says what would do instead."""


class Durability(StrEnum):
    """When a write counts as kept."""

    FSYNC = "fsync"
    OS = "os"


@value
class Setting:
    name: str
    default: Any
    read: Callable[[str], Any]
    kind: str
    meaning: str


def _whole(text: str, *, least: int = 0) -> int:
    number = int(text)
    if number < least:
        raise ValueError(f"less than {least}")
    return number


def _number(name: str, default: int, meaning: str, *, least: int = 0) -> Setting:
    return Setting(
        name=name,
        default=default,
        read=lambda text: _whole(text, least=least),
        kind="number",
        meaning=meaning,
    )


def _flag(name: str, meaning: str, *, default: bool) -> Setting:
    return Setting(
        name=name, default=default, read=_read_flag, kind="true or false", meaning=meaning
    )


def _read_flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("neither true nor false")
    return text.lower() == "true"


def _read_address(text: str) -> str:
    host, _, port = text.rpartition("//")[2].rpartition(":")
    if text and not (host and port.isdecimal() and int(port) <= 65535):
        raise ValueError("no address")
    return text


def _choice(name: str, default: str, choices: tuple[str, ...], meaning: str) -> Setting:
    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"none of {', '.join(choices)}")
        return text

    return Setting(
        name=name, default=default, read=read, kind=" or ".join(choices), meaning=meaning
    )


_LIMITS: Final = Limits()

SETTINGS: Final = {
    setting.name: setting
    for setting in (
        _number("node.id", 1, "The node's number, which clients see in metadata."),
        Setting(
            name="advertised.listeners",
            default="",
            read=_read_address,
            kind="HOST:PORT",
            meaning="HOST:PORT that clients are told; empty: as listened.",
        ),
        _choice(
            "kohort.durability",
            Durability.FSYNC,
            tuple(Durability),
            "fsync: acks=all and group records are answered only once synced, many sharing one; "
            "os: once in the page cache, as Kafka's default.",
        ),
        _flag(
            "auto.create.topics.enable",
            "Whether asking for a topic that does not exist makes it.",
            default=True,
        ),
        _flag("delete.topic.enable", "Whether topics can be deleted.", default=True),
        _number(
            "num.partitions", 1, "Partitions of a topic made without saying how many.", least=1
        ),
        _number(
            "socket.request.max.bytes",
            104_857_600,
            "The largest request; a larger one closes its connection.",
            least=1024,
        ),
        _number("max.connections", 2**31 - 1, "Connections at one time; further ones are closed."),
        _number(
            "connections.max.idle.ms", 10 * _MINUTE, "An idle connection is closed after this long."
        ),
        _number(
            "kohort.connection.inflight.max",
            256,
            "Requests of one connection being answered; reading from it waits at this many.",
            least=1,
        ),
        _number(
            "group.min.session.timeout.ms",
            _LIMITS.group_min_session_timeout_ms,
            "The shortest session a member may ask for.",
        ),
        _number(
            "group.max.session.timeout.ms",
            _LIMITS.group_max_session_timeout_ms,
            "The longest session a member may ask for.",
        ),
        _number(
            "group.initial.rebalance.delay.ms",
            _LIMITS.group_initial_rebalance_delay_ms,
            "How long an empty group waits for more members before its first rebalance.",
        ),
        _number("group.max.size", _LIMITS.group_max_size, "Members of one group.", least=1),
        _number(
            "offset.metadata.max.bytes",
            _LIMITS.offset_metadata_max_bytes,
            "The longest metadata of a committed offset.",
        ),
        _number(
            "offsets.retention.minutes",
            _LIMITS.offsets_retention_ms // _MINUTE,
            "How long offsets outlive their group's last member, or a simple group's last commit.",
            least=1,
        ),
        _number(
            "offsets.retention.check.interval.ms",
            _LIMITS.offsets_retention_check_interval_ms,
            "How often expired offsets are looked for.",
            least=1,
        ),
        _number(
            "offsets.topic.num.partitions",
            1,
            "Partitions of __consumer_offsets, once made. Kafka has 50 to spread over brokers; one "
            "machine syncs one file faster than fifty.",
            least=1,
        ),
        _number(
            "offsets.topic.segment.bytes",
            104_857_600,
            "Segment size of __consumer_offsets.",
            least=1_048_576,
        ),
        _number("message.max.bytes", 1_048_588, "The largest record batch."),
        _number(
            "log.segment.bytes",
            1_073_741_824,
            "When a segment is closed, by size.",
            least=1_048_576,
        ),
        _number("log.roll.ms", 7 * _DAY, "When a segment is closed, by age.", least=1),
        _number("log.retention.ms", 7 * _DAY, "How long records are kept; -1 for ever.", least=-1),
        _number("log.retention.bytes", -1, "How much of a partition is kept; -1 all.", least=-1),
        _choice(
            "log.cleanup.policy",
            "delete",
            ("delete", "compact", "compact,delete", "delete,compact"),
            "What becomes of old records: deleted, compacted by key, or both.",
        ),
        _choice(
            "log.message.timestamp.type",
            "CreateTime",
            ("CreateTime", "LogAppendTime"),
            "Whose clock a record's time is from.",
        ),
        _number(
            "log.retention.check.interval.ms",
            5 * _MINUTE,
            "How often retention and compaction look for work.",
            least=1,
        ),
        _number("producer.id.expiration.ms", _DAY, "How long a silent producer is remembered."),
        _flag(
            "kohort.events.enable",
            "Whether the story of every rebalance is written to __kohort_events.",
            default=True,
        ),
        _number("kohort.events.retention.ms", 30 * _DAY, "How long those stories are kept."),
        _number(
            "kohort.metrics.groups.max",
            1_000,
            "Groups with figures of their own at /metrics; all further ones are told as one.",
        ),
        _number(
            "kohort.metrics.partitions.max",
            1_000,
            "Partitions with figures of their own at /metrics; all further ones are told as one.",
        ),
    )
}


TOPIC_DEFAULTS: Final = {
    "cleanup.policy": "log.cleanup.policy",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.type": "log.message.timestamp.type",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.ms": "log.roll.ms",
}
"""Topic settings, each with the node's setting that holds where a topic has none of its own."""


def text_of(given: object) -> str:
    """A value as it would be written in a file or told to a client."""
    return str(given).lower() if isinstance(given, bool) else str(given)


class Settings:
    """The settings in force. Asked by their Kafka name; what was not given has its default."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self.given = {name: _read(name, text) for name, text in (given or {}).items()}

    def __getitem__(self, name: str) -> Any:
        if name in self.given:
            return self.given[name]
        return SETTINGS[name].default

    @property
    def is_fsync(self) -> bool:
        return bool(self["kohort.durability"] == Durability.FSYNC)

    def topic_defaults(self) -> dict[str, str]:
        """What holds for topics that do not say otherwise, by the names of topic settings."""
        return {name: text_of(self[own]) for name, own in TOPIC_DEFAULTS.items()}

    def limits(self) -> Limits:
        return Limits(
            group_min_session_timeout_ms=self["group.min.session.timeout.ms"],
            group_max_session_timeout_ms=self["group.max.session.timeout.ms"],
            group_initial_rebalance_delay_ms=self["group.initial.rebalance.delay.ms"],
            group_max_size=self["group.max.size"],
            offset_metadata_max_bytes=self["offset.metadata.max.bytes"],
            offsets_retention_ms=Millis(self["offsets.retention.minutes"] * _MINUTE),
            offsets_retention_check_interval_ms=self["offsets.retention.check.interval.ms"],
        )


def split_address(option: str, text: str) -> tuple[str, int]:
    """Host and port, as an option gives them."""
    host, separator, port = text.rpartition(":")
    if not separator or not host or not port.isdecimal() or int(port) > 65535:
        raise BadSetting(f"{option} {text}: it takes HOST:PORT, such as 127.0.0.1:9092")
    return host.strip("[]"), int(port)


def read_settings(file: Path | None, pairs: tuple[str, ...]) -> Settings:
    """From a TOML file and name=value pairs; the pairs win."""
    given = {} if file is None else _read_file(file)
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator:
            raise BadSetting(f"{pair!r} is not of the form name=value")
        given[name.strip()] = text.strip()
    return Settings(given)


def _read_file(file: Path) -> dict[str, str]:
    import tomllib  # noqa: PLC0415  # most nodes start without a file

    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise BadSetting(f"{file} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSetting(f"{file} is not TOML: {error}") from error
    return _flatten(content)


def _flatten(table: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """Dotted names may be quoted keys or nested tables: both mean the same setting."""
    flat: dict[str, str] = {}
    for key, entry in table.items():
        if isinstance(entry, dict):
            flat |= _flatten(entry, f"{prefix}{key}.")
        else:
            flat[prefix + key] = text_of(entry)
    return flat


def _read(name: str, text: str) -> Any:
    setting = SETTINGS.get(name)
    if setting is None:
        from difflib import get_close_matches  # noqa: PLC0415  # only who errs needs it

        near = get_close_matches(name, SETTINGS, 1, 0.5)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise BadSetting(f"there is no setting {name}{hint}")
    try:
        return setting.read(text)
    except ValueError as error:
        raise BadSetting(f"{name}={text}: {error}; it takes a {setting.kind}") from None
