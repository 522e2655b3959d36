"""The options of Kafka's tools: effective, ignored and rejected ones."""

import pytest

from kohort.admin.errors import InvalidRequest
from kohort.admin.options import read_admin_settings


def test_options_of_kafkas_tools_take_effect() -> None:
    given = {
        "client.id": "tool",
        "request.timeout.ms": "5000",
        "send.buffer.bytes": "1000",
        "socket.connection.setup.timeout.ms": "700",
        "retries": "3",
        "security.protocol": "PLAINTEXT",
    }

    settings = read_admin_settings("a:9092, b:9093", given)

    assert settings.bootstrap == (("a", 9092), ("b", 9093))
    assert settings.client_id == "tool"
    assert settings.request_timeout_ms == 5_000
    assert settings.retry_backoff_ms == 100
    assert settings.connection.send_buffer_bytes == 1_000
    assert settings.connection.receive_buffer_bytes == -1
    assert settings.connection.setup_timeout_ms == 700


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("security.protocol", "SASL_SSL", "PLAINTEXT only"),
        ("sasl.mechanism", "PLAIN", "PLAINTEXT only"),
        ("ssl.truststore.location", "x", "PLAINTEXT only"),
        ("client.idd", "x", "did you mean client.id"),
        ("nonsense", "x", "unknown option nonsense"),
        ("request.timeout.ms", "soon", "request.timeout.ms=soon: not a whole number"),
        ("retry.backoff.ms", "-1", "retry.backoff.ms=-1: not between 0"),
    ],
)
def test_an_invalid_option_is_rejected(name: str, content: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        read_admin_settings("a:9092", {name: content})


@pytest.mark.parametrize("text", ["", "host", "host:", ":1", "host:x", "host:70000"])
def test_an_invalid_address_is_rejected(text: str) -> None:
    with pytest.raises(InvalidRequest, match="invalid bootstrap servers"):
        read_admin_settings(text, {})
