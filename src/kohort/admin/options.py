"""Reads the options of Kafka's admin tools that apply here. Pure."""

from collections.abc import Mapping
from typing import Final

from kohort.admin.errors import InvalidRequest
from kohort.protocol.sockets import Address, ConnectionSettings
from kohort.settings.readers import INT_MAX, did_you_mean, read_addresses, read_number
from kohort.types import Millis, value

CLIENT_ID: Final = "kohort-admin"
TIMEOUT_MS: Final = Millis(30_000)
"""The default of Kafka's tools."""

_NUMBERS: Final[Mapping[str, int]] = {
    # A broker that waits for its replicas responds after 30 s at the latest.
    "request.timeout.ms": 35_000,
    "retry.backoff.ms": 100,
    "socket.connection.setup.timeout.ms": 10_000,
    "send.buffer.bytes": -1,
    "receive.buffer.bytes": -1,
}
"""Numeric options with their defaults."""

_IGNORED: Final = frozenset(
    (
        "auto.include.jmx.reporter",
        "client.dns.lookup",
        "connections.max.idle.ms",
        "default.api.timeout.ms",
        "enable.metrics.push",
        "metadata.max.age.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retries",
        "retry.backoff.max.ms",
        "socket.connection.setup.timeout.max.ms",
    )
)
"""Options of Kafka's tools that are accepted and have no effect here."""


@value
class AdminSettings:
    bootstrap: tuple[Address, ...]
    connection: ConnectionSettings
    request_timeout_ms: Millis
    """Limit for one response of one broker."""
    retry_backoff_ms: Millis

    @property
    def client_id(self) -> str:
        return self.connection.client_id


def read_admin_settings(bootstrap: str, options: Mapping[str, str]) -> AdminSettings:
    """Raises InvalidRequest if an option is unknown, invalid or not supported."""
    try:
        addresses = read_addresses(bootstrap)
    except ValueError as error:
        raise InvalidRequest(f"invalid bootstrap servers: {error}") from None
    for name, content in options.items():
        _check(name, content)
    numbers = {
        name: _read_number(name, options[name]) if name in options else default
        for name, default in _NUMBERS.items()
    }
    return AdminSettings(
        bootstrap=addresses,
        connection=ConnectionSettings(
            client_id=options.get("client.id", CLIENT_ID),
            setup_timeout_ms=Millis(numbers["socket.connection.setup.timeout.ms"]),
            send_buffer_bytes=numbers["send.buffer.bytes"],
            receive_buffer_bytes=numbers["receive.buffer.bytes"],
        ),
        request_timeout_ms=Millis(numbers["request.timeout.ms"]),
        retry_backoff_ms=Millis(numbers["retry.backoff.ms"]),
    )


def _read_number(name: str, content: str) -> int:
    minimum = -1 if name.endswith(".bytes") else 0
    try:
        return read_number(content, minimum, INT_MAX)
    except ValueError as error:
        raise InvalidRequest(f"{name}={content}: {error}") from None


def _check(name: str, content: str) -> None:
    # DEVIATION: PLAINTEXT only; TLS and SASL are not supported.
    if name.startswith(("ssl.", "sasl.")) or (
        name == "security.protocol" and content.upper() != "PLAINTEXT"
    ):
        raise InvalidRequest(f"{name} is not supported: Kohort connects with PLAINTEXT only")
    known = {*_NUMBERS, *_IGNORED, "bootstrap.servers", "client.id", "security.protocol"}
    if name not in known:
        raise InvalidRequest(f"unknown option {name}{did_you_mean(name, known)}")
