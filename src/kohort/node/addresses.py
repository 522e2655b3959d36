"""The addresses of a node: where it listens, what it advertises, and who can reach it."""

from collections.abc import Iterable
from typing import Final

from kohort.node.broker import Address
from kohort.node.config import BrokerConfig
from kohort.protocol.own_address import find_own_address
from kohort.settings.hosts import AllowedHosts, is_loopback, is_wildcard, read_advertised
from kohort.types import value

BROKER_EXPOSED: Final = (
    "there is no authentication: every machine that can connect to this address can read, change"
    " and delete all topics and groups; listen on 127.0.0.1, or let a firewall admit only your"
    " clients"
)
METRICS_EXPOSED: Final = (
    "there is no authentication: every machine that can connect to this address can read the"
    " metrics, which name topics and groups; listen on 127.0.0.1, or let a firewall admit only"
    " your Prometheus server"
)


CONTROL_EXPOSED: Final = (
    "there is no authentication: every machine that can connect to this address can change the"
    " node and delete all topics and groups; listen on 127.0.0.1"
)


@value
class HttpEndpoint:
    """Where the metrics page or the control operations are served."""

    listen: Address
    allowed_hosts: AllowedHosts


@value
class NodeAddresses:
    """Where a started node can be reached."""

    bootstrap: Address
    advertised: Address
    metrics: Address | None
    control: Address | None


def usable_address(listening: Address, bound: Iterable[str]) -> Address:
    """An address that clients can connect to. `bound` are the addresses of the listening sockets.

    It is the listening address, unless that is a wildcard such as 0.0.0.0 or a name for one.
    """
    hosts = tuple(bound)
    wildcards = [host for host in hosts if is_wildcard(host)]
    if not wildcards:
        return listening
    # An IPv6 socket of the node accepts no IPv4 connections.
    is_ipv6 = all(":" in host for host in wildcards)
    # DEVIATION: Kafka does not start on 0.0.0.0 without advertised.listeners. Kohort advertises an
    # address of the machine.
    own = find_own_address(is_ipv6=is_ipv6)
    return Address(host=own, port=listening.port)


def advertised_address(settings: BrokerConfig, usable: Address) -> Address:
    """The address in metadata responses: `advertised.listeners`, or the usable address."""
    given: str = settings["advertised.listeners"]
    if not given:
        return usable
    host, port = read_advertised(given)
    return Address(host=host, port=usable.port if port is None else port)


def is_exposed(bound: Iterable[str]) -> bool:
    """Whether other machines may be able to connect."""
    return not all(is_loopback(host) for host in bound)
