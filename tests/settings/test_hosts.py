"""Loopback and wildcard hosts, advertised addresses, and the hosts that a web page answers to."""

import pytest

from kohort.settings.hosts import (
    check_host,
    format_address,
    is_loopback,
    is_wildcard,
    read_advertised,
    read_allowed_hosts,
)
from kohort.settings.readers import BadValue

WILDCARD = "0.0.0.0"  # noqa: S104 - nothing listens here


@pytest.mark.parametrize(
    ("host", "is_local"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("localhost", True),
        ("LOCALHOST.", True),
        ("a.localhost", True),
        ("::1", True),
        ("[::1]", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        (WILDCARD, False),
        ("example.org", False),
        ("127.0.0.1.example.org", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_loopback_names_are_recognized(host: str, is_local: bool) -> None:  # noqa: FBT001
    assert is_loopback(host) is is_local


@pytest.mark.parametrize("host", [WILDCARD, "::", "[::]", "0:0::0", "::ffff:0.0.0.0"])
def test_wildcard_addresses_are_recognized(host: str) -> None:
    assert is_wildcard(host)
    assert not is_wildcard(f"{host}.example")


@pytest.mark.parametrize(
    "host",
    ["", "a b", "a/b", "a@b", "-a", "a..b", "a" * 64, "ä", "1.2.3", "0", "1.2.3.4.5", "::1::2"],
)
def test_invalid_hosts_are_rejected(host: str) -> None:
    with pytest.raises(ValueError, match="not a host name or an IP address"):
        check_host(host)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node.example", ("node.example", None)),
        ("node.example:9092", ("node.example", 9092)),
        ("my_node:1", ("my_node", 1)),
        ("10.0.0.1", ("10.0.0.1", None)),
        ("[fd00::2]:9092", ("fd00::2", 9092)),
        ("[fd00::2]", ("fd00::2", None)),
        ("PLAINTEXT://node.example:9092", ("node.example", 9092)),
    ],
)
def test_advertised_address_is_a_host_with_or_without_a_port(
    text: str, expected: tuple[str, int | None]
) -> None:
    assert read_advertised(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", ":9092", WILDCARD, f"{WILDCARD}:9092", "[::]:9092", "::", "fd00::2:9092"),
        *("0:9092", "host:0", "host:65536", "host:x", "a:1,b:2", "A://a:1,B://b:2", "a b"),
    ],
)
def test_invalid_and_wildcard_addresses_cannot_be_advertised(text: str) -> None:
    with pytest.raises(ValueError, match=r"not|cannot"):
        read_advertised(text)


def test_ipv6_addresses_are_formatted_in_brackets() -> None:
    assert format_address("::1", 9092) == "[::1]:9092"
    assert format_address("127.0.0.1", 9092) == "127.0.0.1:9092"


# Host headers

LISTENS = "192.168.7.1"


@pytest.mark.parametrize(
    "header",
    [
        *(LISTENS, f"{LISTENS}:8080", "localhost:1", "127.0.0.1", "[::1]:8080"),
        *("console.example", "Console.Example.:8080", "secure.example", "10.9.9.9:8080"),
    ],
)
def test_own_loopback_and_allowed_hosts_are_answered(header: str) -> None:
    hosts = read_allowed_hosts(["console.example", "https://secure.example"]).including(LISTENS)

    assert hosts.allows(header, "10.9.9.9")


@pytest.mark.parametrize(
    "header",
    [
        *("evil.example", "evil.example:8080", "", ":8080", "[", "[::1", "127.0.0.1.evil:1"),
        *("console.example.evil", "x@localhost", "localhost evil", "localhost:1:2", "10.9.9.8"),
        *(f"{WILDCARD}:8080", "[::]"),
    ],
)
def test_other_hosts_are_refused(header: str) -> None:
    hosts = read_allowed_hosts(["console.example"]).including(LISTENS).including(WILDCARD)

    assert not hosts.allows(header, "10.9.9.9")


def test_a_wildcard_address_is_never_an_allowed_host() -> None:
    hosts = read_allowed_hosts(()).including("::")

    assert not hosts.allows("[::]:8080", "::")


@pytest.mark.parametrize("text", ["", "a:80", "https://a:443", "ftp://a", "a/b", "*", WILDCARD])
def test_invalid_allowed_hosts_are_rejected_with_a_sentence(text: str) -> None:
    with pytest.raises(BadValue, match=r"allowed host .*; it takes HOST without a port"):
        read_allowed_hosts([text])


# Origin headers


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://localhost:8080", "localhost:8080"),
        ("http://localhost", "localhost"),
        ("http://localhost", "localhost:80"),
        ("http://[::1]:8080", "[::1]:8080"),
        ("https://secure.example", "secure.example"),
        ("https://secure.example", "secure.example:443"),
        ("https://secure.example:8443", "secure.example:8443"),
    ],
)
def test_the_origin_of_the_same_page_is_its_own(origin: str, host: str) -> None:
    assert read_allowed_hosts(["https://secure.example"]).is_own_origin(origin, host)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://localhost:8080", "localhost:8080"),
        ("http://localhost:8081", "localhost:8080"),
        ("http://localhost", "localhost:8080"),
        ("http://localhost:443", "localhost"),
        ("http://secure.example", "secure.example"),
        ("https://secure.example:8443", "secure.example"),
        ("http://evil.example", "localhost"),
        ("ftp://localhost", "localhost"),
        ("http://localhost/", "localhost"),
        ("null", "localhost"),
        ("", ""),
        ("http://", ""),
    ],
)
def test_another_scheme_host_or_port_is_another_origin(origin: str, host: str) -> None:
    assert not read_allowed_hosts(["https://secure.example"]).is_own_origin(origin, host)
