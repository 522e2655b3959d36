"""How a cluster is spoken to, as operators write it down for Kafka's own tools. Pure.

A properties file has Java's names; librdkafka has names of its own for some of the same things.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from kohort.admin.connection import Address
from kohort.admin.errors import WrongWish
from kohort.client.options_table import read_addresses
from kohort.types import Millis, value

CLIENT_ID: Final = "kohort-admin"
TIMEOUT_MS: Final = Millis(30_000)
"""As that of Kafka's own tools."""

_RENAMED: Final[Mapping[str, str]] = {
    "client.id": "client.id",
    "client.dns.lookup": "client.dns.lookup",
    "connections.max.idle.ms": "connections.max.idle.ms",
    "metadata.max.age.ms": "metadata.max.age.ms",
    "reconnect.backoff.ms": "reconnect.backoff.ms",
    "reconnect.backoff.max.ms": "reconnect.backoff.max.ms",
    "request.timeout.ms": "socket.timeout.ms",
    "retry.backoff.ms": "retry.backoff.ms",
    "retry.backoff.max.ms": "retry.backoff.max.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "socket.connection.setup.timeout.ms": "socket.connection.setup.timeout.ms",
}
"""Java's name, and librdkafka's."""

_WITHOUT_EFFECT: Final = frozenset(
    (
        "auto.include.jmx.reporter",
        "default.api.timeout.ms",
        "enable.metrics.push",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "retries",
        "socket.connection.setup.timeout.max.ms",
    )
)
"""Java's tools know these; here there is nothing that they could change."""


@value
class Settings:
    """What a connection is made with."""

    bootstrap: tuple[Address, ...]
    client_id: str
    librdkafka: Mapping[str, str]
    """Under its own names, all but for where the cluster is."""


def read_settings(bootstrap: str, options: Mapping[str, str]) -> Settings:
    """WrongWish where something cannot be meant, or cannot be had here."""
    try:
        addresses = read_addresses(bootstrap)
    except ValueError as error:
        raise WrongWish(f"the cluster's address is not understood: {error}") from None
    renamed: dict[str, str] = {}
    for name, content in options.items():
        _check(name, content)
        if name in _RENAMED:
            renamed[_RENAMED[name]] = content
    return Settings(
        bootstrap=addresses,
        client_id=renamed.setdefault("client.id", CLIENT_ID),
        librdkafka=renamed,
    )


def _check(name: str, content: str) -> None:
    # DEVIATION: clusters are spoken to in plain text only; TLS and SASL are not there.
    if name.startswith(("ssl.", "sasl.")) or (
        name == "security.protocol" and content.upper() != "PLAINTEXT"
    ):
        raise WrongWish(f"{name} is not supported: Kohort speaks to clusters in plain text only")
    known = {*_RENAMED, *_WITHOUT_EFFECT, "bootstrap.servers", "security.protocol"}
    if name not in known:
        near = get_close_matches(name, known, 1, 0.6)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise WrongWish(f"there is no option {name}{hint}")


def read_properties(text: str) -> dict[str, str]:
    """A properties file as Java reads it: comments, `name=value` or `name: value`, long lines."""
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        name, content = _split(line)
        found[_unescape(name)] = _unescape(content)
    return found


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    unfinished = ""
    for raw in text.splitlines():
        line = raw.lstrip(" \t\f")
        if not unfinished and (not line or line[0] in "#!"):
            continue
        line = unfinished + line
        is_continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        unfinished = line[:-1] if is_continued else ""
        if not is_continued:
            lines.append(line)
    return [*lines, unfinished] if unfinished else lines


def _split(line: str) -> tuple[str, str]:
    """At the first separator that is not escaped: an equals sign, a colon or a blank."""
    position = 0
    while position < len(line) and line[position] not in "=: \t\f":
        position += 2 if line[position] == "\\" else 1
    rest = line[position:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return line[:position], rest


def _unescape(text: str) -> str:
    parts: list[str] = []
    position = 0
    while position < len(text):
        letter = text[position]
        position += 1
        if letter != "\\" or position == len(text):
            parts.append(letter)
            continue
        letter = text[position]
        position += 1
        if letter == "u":
            digits = text[position : position + 4]
            if not re.fullmatch("[0-9a-fA-F]{4}", digits):
                raise WrongWish(f"\\u{digits} is no character of a properties file")
            parts.append(chr(int(digits, 16)))
            position += 4
        else:
            parts.append({"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(letter, letter))
    return "".join(parts)
