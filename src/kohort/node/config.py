"""The broker's settings: Kafka's names where Kafka has the setting, with defaults and meanings.

SETTINGS is the source of `kohort serve --settings`, docs/reference/settings.md and DescribeConfigs.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from kohort.coordinator.config import GroupConfig
from kohort.log.file_names import parse_partition_directory
from kohort.settings.hosts import check_host, normalize_host, read_advertised
from kohort.settings.option import Option, choice, flag, get_option, number
from kohort.settings.readers import BadValue, read_address, read_pairs
from kohort.types import Millis

_MODE: Final = re.compile("0?7[0-7][0-7]")
_MINUTE: Final = 60_000
_DAY: Final = 24 * 60 * _MINUTE


class Durability(StrEnum):
    """When a write counts as durable."""

    FSYNC = "fsync"
    OS = "os"


class ClockKind(StrEnum):
    """What moves the node's clock."""

    REAL = "real"
    MANUAL = "manual"


def _read_listener(text: str) -> str:
    if text:
        read_advertised(text)
    return text


def _read_mode(text: str) -> str:
    """Octal, as for chmod. The broker itself needs all permissions of the owner."""
    if not _MODE.fullmatch(text):
        raise ValueError("not between 0700 and 0777")
    return text


def _read_partitions(text: str) -> str:
    for name in filter(None, text.split(",")):
        if parse_partition_directory(name.strip()) is None:
            raise ValueError(f"{name!r} is not a topic and a partition number")
    return text


_GROUP_DEFAULTS: Final = GroupConfig()

SETTINGS: Final[Mapping[str, Option]] = {
    setting.name: setting
    for setting in (
        number("node.id", 1, "The broker id."),
        Option(
            name="advertised.listeners",
            default="",
            read=_read_listener,
            kind="HOST or HOST:PORT",
            meaning="The address for clients, by default with the port the broker listens on; "
            "empty: the address the broker listens on or, if that is a wildcard such as 0.0.0.0, "
            "the address with which the machine uses its default route.",
        ),
        Option(
            name="kohort.data.directory.mode",
            default="0700",
            read=_read_mode,
            kind="an octal number",
            meaning="The permissions of a new data directory. Files in it have the permissions "
            "that the umask allows.",
        ),
        choice(
            "kohort.durability",
            Durability.FSYNC,
            tuple(Durability),
            "fsync: acks=all produces and group records are acknowledged after an fsync, which is "
            "shared by many requests; os: once in the page cache, as in Kafka by default.",
        ),
        choice(
            "kohort.clock",
            ClockKind.REAL,
            tuple(ClockKind),
            "manual: for tests. The time of sessions, rebalances, retention and expiry stands "
            "still until the control operation advance moves it.",
        ),
        Option(
            name="kohort.accept.data.loss",
            default="",
            read=_read_partitions,
            kind="TOPIC-PARTITION, several separated by commas",
            meaning="Partitions that are served at the next start although stored records are "
            "missing. The missing records are given up. Remove the setting after that start.",
        ),
        flag(
            "auto.create.topics.enable",
            "Whether a metadata request creates a topic that does not exist.",
            default=True,
        ),
        flag("delete.topic.enable", "Whether topics can be deleted.", default=True),
        number("num.partitions", 1, "The default number of partitions of a new topic.", minimum=1),
        number(
            "socket.request.max.bytes",
            104_857_600,
            "The largest request. The broker closes the connection of a larger one.",
            minimum=1024,
        ),
        number(
            "queued.max.request.bytes",
            536_870_912,
            "Memory of requests of more than 256 KiB that are being received or handled. Further "
            "ones are not read until there is enough. In Kafka the default is no limit.",
            minimum=1,
        ),
        number(
            "kohort.request.items.max",
            250_000,
            "Topics, partitions and other array items in one request of more than 64 KiB. The "
            "broker closes the connection of a request with more.",
            minimum=1,
        ),
        number(
            "kohort.response.unsent.max.bytes",
            268_435_456,
            "Bytes of responses that clients do not read. Above it the broker closes the connection"
            " with the most.",
            minimum=1,
        ),
        number(
            "kohort.batch.decompressed.max.bytes",
            33_554_432,
            "The decompressed size of a record batch. A larger one is refused with "
            "MESSAGE_TOO_LARGE, so that its producer splits it.",
            minimum=1024,
        ),
        number(
            "kohort.batch.records.max",
            100_000,
            "The number of records in a batch. A larger one is refused with MESSAGE_TOO_LARGE.",
            minimum=1,
        ),
        number(
            "max.connections",
            2**31 - 1,
            "The maximum number of connections; the broker closes further ones. Whatever this is, "
            "a quarter of the file descriptors that the process may open is kept for other files.",
        ),
        number(
            "max.connections.per.ip",
            2**31 - 1,
            "The maximum number of connections from one IP address.",
        ),
        number(
            "connections.max.idle.ms",
            10 * _MINUTE,
            "The broker closes a connection that was idle for this long.",
        ),
        number(
            "kohort.connection.inflight.max",
            256,
            "In-flight requests per connection. At this many the broker stops reading from it.",
            minimum=1,
        ),
        number(
            "group.min.session.timeout.ms",
            _GROUP_DEFAULTS.group_min_session_timeout_ms,
            "The shortest session timeout of a member.",
        ),
        number(
            "group.max.session.timeout.ms",
            _GROUP_DEFAULTS.group_max_session_timeout_ms,
            "The longest session timeout of a member.",
        ),
        number(
            "group.initial.rebalance.delay.ms",
            _GROUP_DEFAULTS.group_initial_rebalance_delay_ms,
            "How long an empty group waits for more members before its first rebalance.",
        ),
        number(
            "group.max.size",
            _GROUP_DEFAULTS.group_max_size,
            "The maximum number of members of a group.",
            minimum=1,
        ),
        number(
            "offset.metadata.max.bytes",
            _GROUP_DEFAULTS.offset_metadata_max_bytes,
            "The maximum size of the metadata of a committed offset.",
        ),
        number(
            "offsets.retention.minutes",
            _GROUP_DEFAULTS.offsets_retention_ms // _MINUTE,
            "How long offsets are retained after the group became empty or, for a group without "
            "members, after its last commit.",
            minimum=1,
        ),
        number(
            "offsets.retention.check.interval.ms",
            _GROUP_DEFAULTS.offsets_retention_check_interval_ms,
            "How often the broker removes expired offsets.",
            minimum=1,
        ),
        number(
            "offsets.topic.num.partitions",
            1,
            "Partitions of __consumer_offsets, fixed when it is created. Kafka's default is 50, to "
            "spread groups over brokers; one broker syncs one file faster than fifty.",
            minimum=1,
        ),
        number(
            "offsets.topic.segment.bytes",
            104_857_600,
            "The segment size of __consumer_offsets.",
            minimum=1_048_576,
        ),
        number("message.max.bytes", 1_048_588, "The largest record batch."),
        number(
            "log.segment.bytes",
            1_073_741_824,
            "The size at which a segment is rolled.",
            minimum=1_048_576,
        ),
        number("log.roll.ms", 7 * _DAY, "The age at which a segment is rolled.", minimum=1),
        number(
            "log.retention.ms", 7 * _DAY, "How long records are retained; -1: forever.", minimum=-1
        ),
        number(
            "log.retention.bytes",
            -1,
            "How many bytes of a partition are retained; -1: all.",
            minimum=-1,
        ),
        choice(
            "log.cleanup.policy",
            "delete",
            ("delete", "compact", "compact,delete", "delete,compact"),
            "How old records are removed: by retention (delete), by key (compact), or both.",
        ),
        choice(
            "log.message.timestamp.type",
            "CreateTime",
            ("CreateTime", "LogAppendTime"),
            "Whether a record has the timestamp of its producer or of its append.",
        ),
        number(
            "log.retention.check.interval.ms",
            5 * _MINUTE,
            "How often the broker checks for retention and compaction.",
            minimum=1,
        ),
        number(
            "kohort.open.files.max",
            0,
            "Segment files that are open at the same time; the least recently used are closed. 0: "
            "half of the process's file descriptors, so that the other half is left for sockets.",
        ),
        number(
            "producer.id.expiration.ms", _DAY, "How long the state of an inactive producer is kept."
        ),
        flag(
            "kohort.events.enable",
            "Whether rebalances and other group events are written to __kohort_events.",
            default=True,
        ),
        number("kohort.events.retention.ms", 30 * _DAY, "How long events are retained."),
        number(
            "kohort.metrics.groups.max",
            1_000,
            "Groups with their own labels in /metrics; further ones share the label (other).",
        ),
        number(
            "kohort.metrics.partitions.max",
            1_000,
            "Partitions with their own labels in /metrics; further ones share the label (other).",
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
"""Topic settings, each with the broker setting that is its default."""


def format_value(given: object) -> str:
    """Format a value as in a settings file or in a response."""
    return str(given).lower() if isinstance(given, bool) else str(given)


class BrokerConfig:
    """The effective settings by name: the given values, else the defaults."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self.given = {
            name: get_option(SETTINGS, name, "setting").parse(text)
            for name, text in (given or {}).items()
        }

    def __getitem__(self, name: str) -> Any:
        if name in self.given:
            return self.given[name]
        return SETTINGS[name].default

    def with_value(self, name: str, text: str) -> "BrokerConfig":
        changed = BrokerConfig({name: text})
        changed.given = {**self.given, **changed.given}
        return changed

    @property
    def data_directory_mode(self) -> int:
        return int(self["kohort.data.directory.mode"], 8)

    @property
    def is_fsync(self) -> bool:
        return bool(self["kohort.durability"] == Durability.FSYNC)

    @property
    def has_manual_clock(self) -> bool:
        return bool(self["kohort.clock"] == ClockKind.MANUAL)

    @property
    def accepted_losses(self) -> frozenset[str]:
        """The directories of partitions that start although records are missing."""
        names: str = self["kohort.accept.data.loss"]
        return frozenset(name.strip() for name in names.split(",") if name.strip())

    def topic_defaults(self) -> dict[str, str]:
        """The defaults of topic settings, by the names of topic settings."""
        return {name: format_value(self[own]) for name, own in TOPIC_DEFAULTS.items()}

    def group_config(self) -> GroupConfig:
        return GroupConfig(
            group_min_session_timeout_ms=self["group.min.session.timeout.ms"],
            group_max_session_timeout_ms=self["group.max.session.timeout.ms"],
            group_initial_rebalance_delay_ms=self["group.initial.rebalance.delay.ms"],
            group_max_size=self["group.max.size"],
            offset_metadata_max_bytes=self["offset.metadata.max.bytes"],
            offsets_retention_ms=Millis(self["offsets.retention.minutes"] * _MINUTE),
            offsets_retention_check_interval_ms=self["offsets.retention.check.interval.ms"],
        )


def split_address(option: str, text: str) -> tuple[str, int]:
    """Parse the HOST:PORT of a command line option."""
    try:
        host, port = read_address(text, port_min=0)
        if ":" in host:
            check_host(host)
    except ValueError:
        raise BadValue(
            f"{option} {text}: expected HOST:PORT with a port between 0 and 65535, for example"
            " 127.0.0.1:9092"
        ) from None
    return host, port


def with_advertised(settings: BrokerConfig, option: str, text: str) -> BrokerConfig:
    """The settings with this `advertised.listeners`, with which a given one must agree."""
    if not text:
        return settings
    try:
        host, port = read_advertised(text)
    except ValueError as error:
        raise BadValue(f"{option} {text}: {error}") from None
    name = "advertised.listeners"
    if settings[name]:
        set_host, set_port = read_advertised(settings[name])
        is_same_host = normalize_host(host) == normalize_host(set_host)
        if not is_same_host or (port and set_port and port != set_port):
            raise BadValue(
                f"{option} {text} contradicts the setting {name}={settings[name]}: give only one"
            )
        if port is None:
            return settings
    return settings.with_value(name, text)


def read_settings(file: Path | None, pairs: tuple[str, ...]) -> BrokerConfig:
    """Read settings from a TOML file and name=value pairs; pairs override the file."""
    given = {} if file is None else _read_file(file)
    return BrokerConfig({**given, **read_pairs(pairs, "--set", may_repeat=True)})


def _read_file(file: Path) -> dict[str, str]:
    import tomllib  # noqa: PLC0415  # most nodes start without a file

    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise BadValue(f"{file} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadValue(f"{file} is not valid TOML: {error}") from error
    return _flatten(content)


def _flatten(table: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """A dotted name may be a quoted key or nested tables."""
    flat: dict[str, str] = {}
    for key, entry in table.items():
        if isinstance(entry, dict):
            flat |= _flatten(entry, f"{prefix}{key}.")
        else:
            flat[prefix + key] = format_value(entry)
    return flat
