"""All options of the consumer: name, default, meaning and parser.

Parsing, its error messages and docs/reference/consumer.md use OPTIONS only.
"""

from collections.abc import Iterable
from enum import StrEnum
from functools import partial
from typing import Final

from kohort.assignors import BUILT_IN, Assignor, get_assignor
from kohort.settings.option import Option, flag, function, number, text, word
from kohort.settings.readers import INT_MAX, read_addresses

_MINUTE: Final = 60_000


class OffsetReset(StrEnum):
    """Where to start without a valid committed offset."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


class IsolationLevel(StrEnum):
    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


# The maximum is that of int32 in the wire format.
_number: Final = partial(number, maximum=INT_MAX)

_JAVA_ASSIGNORS: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}


def _read_assignors(given: object) -> tuple[Assignor, ...]:
    wanted = given.split(",") if isinstance(given, str) else given
    if not isinstance(wanted, Iterable):
        wanted = [wanted]
    assignors = tuple(_read_assignor(each) for each in wanted)
    if not assignors:
        raise ValueError("give at least one assignor")
    return assignors


def _read_assignor(given: object) -> Assignor:
    if isinstance(given, str):
        name = given.strip()
        return get_assignor(_JAVA_ASSIGNORS.get(name.rpartition(".")[2], name))
    if not hasattr(given, "name") or not hasattr(given, "assign"):
        raise ValueError(f"{given!r} is neither an Assignor nor the name of one")
    assignor: Assignor = given  # type: ignore[assignment]  # duck typing
    return assignor


_RESETS: Final = {
    "earliest": OffsetReset.EARLIEST,
    "beginning": OffsetReset.EARLIEST,
    "smallest": OffsetReset.EARLIEST,
    "latest": OffsetReset.LATEST,
    "end": OffsetReset.LATEST,
    "largest": OffsetReset.LATEST,
    "none": OffsetReset.NONE,
    "error": OffsetReset.NONE,
}

OPTIONS: Final = {
    option.name: option
    for option in (
        Option(
            name="bootstrap.servers",
            default=(("localhost", 9092),),
            read=read_addresses,
            kind="HOST:PORT, or several",
            meaning="Brokers to connect to first; their metadata names the others.",
            aliases=("metadata.broker.list",),
        ),
        text(
            "group.id",
            None,
            "The consumer group. `subscribe` and commits need one.",
        ),
        text(
            "group.instance.id",
            None,
            "Makes this a static member: if it restarts within its session timeout, it gets the "
            "same partitions without a rebalance (KIP-345).",
        ),
        text("client.id", "kohort", "The name of this client in broker logs."),
        text(
            "client.rack",
            None,
            "The rack of this client. Brokers with known replica racks let it fetch from the "
            "nearest one (KIP-392).",
        ),
        Option(
            name="partition.assignment.strategy",
            default=(get_assignor("range"), get_assignor("cooperative-sticky")),
            read=_read_assignors,
            kind=f"{', '.join(BUILT_IN)}; a list, or an Assignor",
            meaning="How the group leader assigns partitions, in order of preference. All members "
            "must have one in common. As in Kafka, the default lets a group change from range to "
            "cooperative-sticky with a rolling restart.",
        ),
        _number(
            "session.timeout.ms",
            45_000,
            "The coordinator removes a member after this time without a heartbeat.",
            minimum=1,
        ),
        _number(
            "heartbeat.interval.ms",
            3_000,
            "Time between heartbeats; at most a third of session.timeout.ms.",
            minimum=1,
        ),
        _number(
            "max.poll.interval.ms",
            300_000,
            "Longest time between two polls. After it, the member leaves the group; the next poll "
            "joins again. Also how long a rebalance waits for this member.",
            minimum=1,
        ),
        _number(
            "max.poll.records", 500, "Maximum number of records that one poll returns.", minimum=1
        ),
        flag(
            "enable.auto.commit",
            "Commit processed positions automatically.",
            default=True,
        ),
        _number("auto.commit.interval.ms", 5_000, "Time between automatic commits.", minimum=1),
        word(
            "auto.offset.reset",
            OffsetReset.LATEST,
            _RESETS,
            "Where to start without a valid committed offset; none raises InvalidOffsetError.",
            shown=tuple(OffsetReset),
        ),
        word(
            "isolation.level",
            IsolationLevel.READ_UNCOMMITTED,
            {level.value: level for level in IsolationLevel},
            "read_committed skips records of open and aborted transactions.",
            shown=tuple(IsolationLevel),
        ),
        _number(
            "fetch.min.bytes",
            1,
            "A broker responds to a fetch when it has this many bytes, or at the timeout.",
            minimum=1,
        ),
        _number(
            "fetch.max.wait.ms",
            500,
            "How long a broker waits for fetch.min.bytes.",
            aliases=("fetch.wait.max.ms",),
        ),
        _number(
            "fetch.max.bytes",
            52_428_800,
            "Maximum size of a fetch response, unless the first batch is larger. Also the limit of "
            "buffered bytes per broker, above which no more is fetched.",
            minimum=1,
        ),
        _number(
            "max.partition.fetch.bytes",
            1_048_576,
            "Maximum bytes per partition in a fetch response, with the same exception.",
            minimum=1,
            aliases=("fetch.message.max.bytes",),
        ),
        flag(
            "check.crcs",
            "Verify the CRC of each batch.",
            default=True,
        ),
        function("key.deserializer", "Converts key bytes to an object; null stays None."),
        function("value.deserializer", "Converts value bytes to an object; null stays None."),
        _number(
            "consumer.timeout.ms",
            -1,
            "`for record in consumer` ends after this time without a record; -1: never.",
            minimum=-1,
        ),
        flag(
            "exclude.internal.topics",
            "Patterns do not match internal topics.",
            default=True,
        ),
        flag(
            "allow.auto.create.topics",
            "Let a broker create a missing topic, if its auto.create.topics.enable is true.",
            default=True,
        ),
        _number(
            "metadata.max.age.ms",
            5 * _MINUTE,
            "Time between metadata updates: how soon new partitions and new topics that match a "
            "pattern are found.",
            minimum=1,
            aliases=("topic.metadata.refresh.interval.ms",),
        ),
        _number(
            "request.timeout.ms",
            30_000,
            "How long to wait for a response before the connection is closed.",
            minimum=1,
            aliases=("socket.timeout.ms",),
        ),
        _number(
            "default.api.timeout.ms",
            60_000,
            "Default timeout of calls such as `commit` and `position`.",
            minimum=1,
        ),
        _number("retry.backoff.ms", 100, "Backoff before the first retry of a request."),
        _number("retry.backoff.max.ms", 1_000, "Maximum backoff; it doubles with each retry."),
        _number("reconnect.backoff.ms", 50, "Backoff before the first reconnect."),
        _number(
            "reconnect.backoff.max.ms", 1_000, "Maximum backoff; it doubles with each reconnect."
        ),
        _number("socket.connection.setup.timeout.ms", 10_000, "Timeout of connecting.", minimum=1),
        _number(
            "connections.max.idle.ms",
            9 * _MINUTE,
            "Close connections that were not used for this time.",
            minimum=1,
        ),
        _number(
            "receive.buffer.bytes",
            -1,
            "SO_RCVBUF of sockets; -1: the default of the operating system.",
            minimum=-1,
            aliases=("socket.receive.buffer.bytes",),
        ),
        _number(
            "send.buffer.bytes",
            -1,
            "SO_SNDBUF of sockets; -1: the default of the operating system.",
            minimum=-1,
            aliases=("socket.send.buffer.bytes",),
        ),
        # DEVIATION: the consumer connects to brokers in plain text only; TLS and SASL are missing.
        word(
            "security.protocol",
            "PLAINTEXT",
            {"plaintext": "PLAINTEXT"},
            "Encryption and authentication are not supported.",
            shown=("PLAINTEXT",),
        ),
    )
}
