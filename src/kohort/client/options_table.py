"""Every option of the consumer: its name, its default, its meaning and its check.

OPTIONS is the whole truth: what is refused, what it is refused with and docs/consumer.md are made
from it.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from kohort.client.assignors import BUILT_IN, Assignor, get_assignor
from kohort.client.errors import BadOption
from kohort.types import value

Address = tuple[str, int]
"""Host and port of a broker."""

_MINUTE: Final = 60_000
_INT_MAX: Final = 2**31 - 1
_TEXT_BYTES_MAX: Final = 32_767
"""What the wire can hold."""


class OffsetReset(StrEnum):
    """Where to begin when the group has committed nothing, or what it did is gone."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


class IsolationLevel(StrEnum):
    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


@value
class Option:
    name: str
    """With dots, as Kafka writes it."""
    default: Any
    read: Callable[[Any], Any]
    """Gives the value as it is used, or raises ValueError with what is wrong."""
    kind: str
    meaning: str
    aliases: tuple[str, ...] = ()
    """What other clients call it."""

    @property
    def keyword(self) -> str:
        return self.name.replace(".", "_")


# Kinds of options


def _number(
    name: str,
    default: int,
    meaning: str,
    *,
    least: int = 0,
    most: int = _INT_MAX,
    aliases: tuple[str, ...] = (),
) -> Option:
    def read(given: object) -> int:
        number = _whole(given)
        if not least <= number <= most:
            raise ValueError(f"not between {least} and {most}")
        return number

    return Option(
        name=name, default=default, read=read, kind="number", meaning=meaning, aliases=aliases
    )


def _whole(given: object) -> int:
    """A configuration read from a file has numbers as text."""
    if isinstance(given, str) and given.lstrip("-").isdecimal():
        return int(given)
    if isinstance(given, bool) or not isinstance(given, int):
        raise ValueError("not a whole number")  # noqa: TRY004 - all refusals are alike
    return given


def _flag(name: str, meaning: str, *, default: bool, aliases: tuple[str, ...] = ()) -> Option:
    return Option(
        name=name,
        default=default,
        read=_read_flag,
        kind="true or false",
        meaning=meaning,
        aliases=aliases,
    )


def _read_flag(given: object) -> bool:
    if isinstance(given, str) and given.lower() in ("true", "false"):
        return given.lower() == "true"
    if not isinstance(given, bool):
        raise ValueError("neither true nor false")  # noqa: TRY004
    return given


def _text(name: str, default: str | None, meaning: str, *, aliases: tuple[str, ...] = ()) -> Option:
    return Option(
        name=name, default=default, read=_read_text, kind="text", meaning=meaning, aliases=aliases
    )


def _read_text(given: object) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str):
        raise ValueError("not text")  # noqa: TRY004
    if not given:
        raise ValueError("empty")
    if len(given.encode()) > _TEXT_BYTES_MAX:
        raise ValueError(f"too long: at most {_TEXT_BYTES_MAX} bytes")
    return given


def _choice(
    name: str, default: str, words: Mapping[str, str], meaning: str, *, shown: Iterable[str]
) -> Option:
    """One of some words; several may mean the same."""

    def read(given: object) -> str:
        if not isinstance(given, str) or given.lower() not in words:
            raise ValueError(f"none of {', '.join(shown)}")
        return words[given.lower()]

    return Option(name=name, default=default, read=read, kind=" or ".join(shown), meaning=meaning)


def _function(name: str, meaning: str) -> Option:
    def read(given: object) -> object:
        if given is not None and not callable(given):
            raise ValueError("not callable")
        return given

    return Option(name=name, default=None, read=read, kind="function", meaning=meaning)


# Kinds that only one option has


def read_addresses(given: object) -> tuple[Address, ...]:
    """From "host:port,host:port", or a list of such."""
    texts = given.split(",") if isinstance(given, str) else given
    if not isinstance(texts, Iterable):
        raise ValueError("no addresses")  # noqa: TRY004
    addresses = tuple(_read_address(text) for text in texts)
    if not addresses:
        raise ValueError("no address at all")
    return addresses


def _read_address(given: object) -> Address:
    text = given.strip() if isinstance(given, str) else ""
    host, separator, port = text.rpartition("://")[2].rpartition(":")
    if not separator or not host or not port.isdecimal() or not 0 < int(port) <= 65535:
        raise ValueError(f"{given!r} is not HOST:PORT")
    return host.strip("[]"), int(port)


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
        raise ValueError("no assignor at all")
    return assignors


def _read_assignor(given: object) -> Assignor:
    if isinstance(given, str):
        name = given.strip()
        try:
            return get_assignor(_JAVA_ASSIGNORS.get(name.rpartition(".")[2], name))
        except BadOption as error:
            raise ValueError(str(error)) from None
    if not hasattr(given, "name") or not hasattr(given, "assign"):
        raise ValueError(f"{given!r} is neither an assignor nor the name of one")
    assignor: Assignor = given  # type: ignore[assignment]  # any object with its names will do
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
            meaning="Brokers to begin with; the others are learnt from them.",
            aliases=("metadata.broker.list",),
        ),
        _text(
            "group.id",
            None,
            "The group to share partitions and commits with. Without one there is no `subscribe` "
            "and no commit.",
        ),
        _text(
            "group.instance.id",
            None,
            "A name for this member that outlives it: when it comes back within its session, it "
            "finds its place, and nobody rebalances (KIP-345).",
        ),
        _text("client.id", "kohort", "What brokers call this client in their logs."),
        _text(
            "client.rack",
            None,
            "Where this client stands; a Kafka that knows where its replicas are lets it read from "
            "the nearest one (KIP-392).",
        ),
        Option(
            name="partition.assignment.strategy",
            default=(get_assignor("range"), get_assignor("cooperative-sticky")),
            read=_read_assignors,
            kind=f"{', '.join(BUILT_IN)}; a list, or an Assignor",
            meaning="How the group's leader deals out partitions, in order of preference; all "
            "members must have one in common. The default, as Kafka's, lets a group change from "
            "range to cooperative-sticky without an outage.",
        ),
        _number(
            "session.timeout.ms",
            45_000,
            "A member that is silent for so long is taken for dead.",
            least=1,
        ),
        _number(
            "heartbeat.interval.ms",
            3_000,
            "How often a member says that it lives; a third of the session at most.",
            least=1,
        ),
        _number(
            "max.poll.interval.ms",
            300_000,
            "A program that does not poll for so long is stuck: its member leaves the group, and "
            "comes back with the next poll. Also how long a rebalance waits for it.",
            least=1,
        ),
        _number("max.poll.records", 500, "Most records that one poll gives.", least=1),
        _flag(
            "enable.auto.commit",
            "Whether what the program has done with is committed by itself.",
            default=True,
        ),
        _number("auto.commit.interval.ms", 5_000, "How often that is done.", least=1),
        _choice(
            "auto.offset.reset",
            OffsetReset.LATEST,
            _RESETS,
            "Where to begin when nothing is committed, or what was is gone; none raises "
            "OffsetNotValid.",
            shown=tuple(OffsetReset),
        ),
        _choice(
            "isolation.level",
            IsolationLevel.READ_UNCOMMITTED,
            {level.value: level for level in IsolationLevel},
            "Whether records of transactions that are open or aborted are left out.",
            shown=tuple(IsolationLevel),
        ),
        _number(
            "fetch.min.bytes", 1, "A broker answers once it has so many, or time is up.", least=1
        ),
        _number(
            "fetch.max.wait.ms",
            500,
            "How long it waits for them.",
            aliases=("fetch.wait.max.ms",),
        ),
        _number(
            "fetch.max.bytes",
            52_428_800,
            "Most bytes of one answer, but for a first batch that is larger; also of what is held "
            "for the program from one broker, before more is asked for.",
            least=1,
        ),
        _number(
            "max.partition.fetch.bytes",
            1_048_576,
            "Most bytes of one partition in one answer, with the same exception.",
            least=1,
            aliases=("fetch.message.max.bytes",),
        ),
        _flag(
            "check.crcs",
            "Whether checksums are compared, so that what was damaged on the way is noticed.",
            default=True,
        ),
        _function("key.deserializer", "Turns a key's bytes into an object; null stays None."),
        _function("value.deserializer", "The same for values."),
        _number(
            "consumer.timeout.ms",
            -1,
            "After so long without a record `for record in consumer` ends; -1: never.",
            least=-1,
        ),
        _flag(
            "exclude.internal.topics",
            "Whether a pattern leaves out Kafka's own topics.",
            default=True,
        ),
        _flag(
            "allow.auto.create.topics",
            "Whether a broker that makes topics when they are asked for may do so.",
            default=True,
        ),
        _number(
            "metadata.max.age.ms",
            5 * _MINUTE,
            "How often topics are looked up anew: how soon new partitions, and new topics that a "
            "pattern matches, are noticed.",
            least=1,
            aliases=("topic.metadata.refresh.interval.ms",),
        ),
        _number(
            "request.timeout.ms",
            30_000,
            "How long a broker may take to answer; then its connection is given up.",
            least=1,
            aliases=("socket.timeout.ms",),
        ),
        _number(
            "default.api.timeout.ms",
            60_000,
            "How long a call such as `commit` or `position` tries before it raises.",
            least=1,
        ),
        _number("retry.backoff.ms", 100, "Pause before the first repetition of what failed."),
        _number("retry.backoff.max.ms", 1_000, "Longest pause, reached by doubling."),
        _number("reconnect.backoff.ms", 50, "Pause before the first new attempt to connect."),
        _number("reconnect.backoff.max.ms", 1_000, "Longest pause, reached by doubling."),
        _number(
            "socket.connection.setup.timeout.ms", 10_000, "How long connecting may take.", least=1
        ),
        _number(
            "connections.max.idle.ms",
            9 * _MINUTE,
            "A connection that was not used for so long is closed.",
            least=1,
        ),
        _number(
            "receive.buffer.bytes",
            -1,
            "SO_RCVBUF of every socket; -1: what the system thinks best.",
            least=-1,
            aliases=("socket.receive.buffer.bytes",),
        ),
        _number(
            "send.buffer.bytes",
            -1,
            "SO_SNDBUF of every socket; -1: what the system thinks best.",
            least=-1,
            aliases=("socket.send.buffer.bytes",),
        ),
        # DEVIATION: the consumer speaks to brokers in plain text only; TLS and SASL are not there.
        _choice(
            "security.protocol",
            "PLAINTEXT",
            {"plaintext": "PLAINTEXT"},
            "Encryption and authentication are not supported.",
            shown=("PLAINTEXT",),
        ),
    )
}
