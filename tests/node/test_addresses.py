"""What a node advertises, and its warning if other machines can connect."""

import logging

import pytest

import kohort
from kohort.node.addresses import advertised_address, is_exposed, usable_address
from kohort.node.broker import Address
from kohort.node.config import BrokerConfig, with_advertised
from kohort.protocol.own_address import find_own_address
from kohort.settings.hosts import is_wildcard
from kohort.settings.readers import BadValue
from kohort.types import GroupId
from kohort.wire.api.k03_metadata import MetadataRequest
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from kohort.wire.api.k60_describe_cluster import DescribeClusterRequest
from tests.node.raw_client import RawClient

WILDCARD = "0.0.0.0"  # noqa: S104 - nothing listens here


def listening_on(host: str) -> Address:
    return Address(host=host, port=9092)


@pytest.mark.parametrize(
    ("host", "bound"), [("127.0.0.1", ["127.0.0.1"]), ("node.example", ["10.0.0.1", "fd00::1"])]
)
def test_listening_address_is_advertised(host: str, bound: list[str]) -> None:
    usable = usable_address(listening_on(host), bound)

    assert advertised_address(BrokerConfig(), usable) == listening_on(host)


@pytest.mark.parametrize(
    ("host", "bound"),
    [
        (WILDCARD, [WILDCARD]),
        ("0", [WILDCARD]),
        ("::", ["::"]),
        ("", [WILDCARD, "::"]),
        ("a-name-for-all", [WILDCARD]),
    ],
)
def test_wildcard_address_is_replaced_by_an_own_address(host: str, bound: list[str]) -> None:
    usable = usable_address(listening_on(host), bound)

    assert usable.host == find_own_address(is_ipv6=bound == ["::"])
    assert not is_wildcard(usable.host)
    assert usable.port == 9092


def test_own_address_is_of_the_wanted_family() -> None:
    assert ":" not in find_own_address()
    assert ":" in find_own_address(is_ipv6=True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("public.example", "public.example:9092"),
        ("public.example:19092", "public.example:19092"),
        ("PLAINTEXT://[fd00::2]:19092", "[fd00::2]:19092"),
    ],
)
def test_setting_is_advertised(given: str, expected: str) -> None:
    settings = BrokerConfig({"advertised.listeners": given})

    assert str(advertised_address(settings, listening_on("127.0.0.1"))) == expected


@pytest.mark.parametrize(
    ("option", "setting", "expected"),
    [
        ("a:1", "", "a:1"),
        ("", "a:1", "a:1"),
        ("a:1", "a:1", "a:1"),
        ("A:1", "PLAINTEXT://a:1", "A:1"),
        ("a", "a:1", "a:1"),
        ("a:1", "a", "a:1"),
    ],
)
def test_option_and_setting_may_agree(option: str, setting: str, expected: str) -> None:
    settings = BrokerConfig({"advertised.listeners": setting} if setting else {})

    merged = with_advertised(settings, "--advertise", option)

    assert merged["advertised.listeners"] == expected
    assert settings["advertised.listeners"] == setting


@pytest.mark.parametrize(("option", "setting"), [("a:1", "b:1"), ("a:1", "a:2"), ("a", "b")])
def test_contradicting_option_and_setting_are_refused(option: str, setting: str) -> None:
    with pytest.raises(BadValue, match=f"advertise {option} contradicts the setting"):
        kohort.Node(advertise=option, settings={"advertised.listeners": setting})


def test_clients_get_the_advertised_address_in_every_response() -> None:
    with kohort.Node(advertise="node.example:19092") as node:
        host, _, port = node.bootstrap_servers.rpartition(":")
        with RawClient(Address(host=host, port=int(port))) as client:
            metadata = client.ask(MetadataRequest(topics=()), 9).brokers[0]
            cluster = client.ask(DescribeClusterRequest(), 0).brokers[0]
            coordinator = client.ask(FindCoordinatorRequest(key=GroupId("g")), 3)

    assert host == "127.0.0.1"
    for each in (metadata, cluster, coordinator):
        assert (each.host, each.port) == ("node.example", 19092)


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        (["127.0.0.1", "::1"], False),
        ([WILDCARD], True),
        (["::"], True),
        (["127.0.0.1", "10.0.0.1"], True),
    ],
)
def test_other_machines_can_connect_unless_all_addresses_are_loopback(
    bound: list[str],
    expected: bool,  # noqa: FBT001
) -> None:
    assert is_exposed(bound) is expected


def test_node_on_loopback_does_not_warn(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), kohort.Node(metrics="127.0.0.1:0"):
        pass

    assert "exposed" not in caplog.text


def test_ipv6_address_is_in_brackets() -> None:
    with kohort.Node(host="::1", metrics="[::1]:0") as node:
        assert node.bootstrap_servers.startswith("[::1]:")
        assert node.metrics_url.startswith("http://[::1]:")
