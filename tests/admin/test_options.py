"""A properties file as Java reads it, and what of it can be had here."""

import pytest

from kohort.admin.errors import WrongWish
from kohort.admin.options import read_properties, read_settings


def test_a_properties_file_is_read_as_java_does() -> None:
    text = r"""
        # a comment
        ! another
        client.id = tool
        request.timeout.ms: 5000
        retries 3
        metric.reporters=a,\
            b
        path=c\:\\d\u0041\t.
        empty=
    """

    assert read_properties(text) == {
        "client.id": "tool",
        "request.timeout.ms": "5000",
        "retries": "3",
        "metric.reporters": "a,b",
        "path": "c:\\dA\t.",
        "empty": "",
    }


def test_a_broken_escape_is_refused() -> None:
    with pytest.raises(WrongWish, match="properties file"):
        read_properties(r"a=\u12")


def test_javas_names_become_librdkafkas() -> None:
    given = {"request.timeout.ms": "5000", "retries": "3", "security.protocol": "PLAINTEXT"}

    settings = read_settings("a:9092, b:9093", given)

    assert settings.bootstrap == (("a", 9092), ("b", 9093))
    assert settings.librdkafka == {"socket.timeout.ms": "5000", "client.id": "kohort-admin"}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("security.protocol", "SASL_SSL", "plain text only"),
        ("sasl.mechanism", "PLAIN", "plain text only"),
        ("ssl.truststore.location", "x", "plain text only"),
        ("client.idd", "x", "did you mean client.id"),
        ("nonsense", "x", "there is no option nonsense"),
    ],
)
def test_what_cannot_be_had_is_refused_by_name(name: str, content: str, said: str) -> None:
    with pytest.raises(WrongWish, match=said):
        read_settings("a:9092", {name: content})


@pytest.mark.parametrize("text", ["", "host", "host:", ":1", "host:x", "host:70000"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(WrongWish, match="address"):
        read_settings(text, {})
