"""Host names and addresses: which are loopback or wildcard, and which a web page answers to. Pure.

A web page that answers to any name can be read by other web sites: their name may resolve to the
address of the page (DNS rebinding), and then the browser allows their scripts to read it. Such a
request has the other site's name in its Host header. `AllowedHosts` refuses it.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Final

from kohort.settings.readers import BadValue
from kohort.types import value

_HOST_CHARS_MAX: Final = 253
_PORT_MAX: Final = 65_535

_NAME: Final = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?:\.(?!-)[A-Za-z0-9_-]{1,63})*\.?")
"""Underscores are not valid in DNS names, but common in names of containers."""

_HOST_AND_PORT: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]{1,5}))?")
_LISTENER: Final = re.compile(r"[A-Za-z0-9_.-]+://")
_WEB_PORTS: Final = {"http": 80, "https": 443}


# Hosts


def normalize_host(host: str) -> str:
    """The spelling in which hosts are compared."""
    name = host.strip("[]").lower().rstrip(".")
    address = _find_address(name)
    return name if address is None else str(address)


def is_loopback(host: str) -> bool:
    """Whether only this machine can use it: a name of localhost, or a loopback address."""
    name = normalize_host(host)
    address = _find_address(name)
    if address is None:
        return name == "localhost" or name.endswith(".localhost")
    return address.is_loopback


def is_wildcard(host: str) -> bool:
    """Whether it means all addresses of a machine, as 0.0.0.0 and :: do."""
    address = _find_address(host.strip("[]"))
    return address is not None and address.is_unspecified


def check_host(host: str) -> None:
    """Raises ValueError unless it can be the name or the address of a host."""
    # A last label of digits is an address for every resolver: 0 and 0.0 are 0.0.0.0.
    is_numeric = host.rstrip(".").rpartition(".")[2].isdecimal()
    is_name = len(host) <= _HOST_CHARS_MAX and not is_numeric and _NAME.fullmatch(host) is not None
    if not is_name and _find_address(host) is None:
        raise ValueError("not a host name or an IP address")


def format_address(host: str, port: int) -> str:
    """HOST:PORT; an IPv6 address is in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def read_advertised(text: str) -> tuple[str, int | None]:
    """HOST[:PORT], also with a listener name in front. Raises ValueError."""
    listener = _LISTENER.match(text)
    found = _HOST_AND_PORT.fullmatch(text[listener.end() :] if listener else text)
    if found is None:
        raise ValueError("not HOST or HOST:PORT")
    host, port = found[1].strip("[]"), None if found[2] is None else int(found[2])
    check_host(host)
    if is_wildcard(host):
        raise ValueError("clients cannot connect to a wildcard address")
    if port is not None and not 1 <= port <= _PORT_MAX:
        raise ValueError(f"port {port} is not between 1 and {_PORT_MAX}")
    return host, port


def _find_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


# Host and Origin headers


@value
class AllowedHosts:
    """The hosts that a web page answers to.

    Loopback names and the address to which a client has connected are always allowed: no other
    site can have them as its name.
    """

    schemes: Mapping[str, frozenset[str]]
    """The URL schemes of pages, by host."""

    def including(self, host: str, scheme: str = "http") -> "AllowedHosts":
        if is_wildcard(host):
            return self
        name = normalize_host(host)
        return AllowedHosts(
            schemes={**self.schemes, name: self.schemes.get(name, frozenset()) | {scheme}}
        )

    def allows(self, host_header: str, connected_to: str) -> bool:
        """`connected_to` is the address of this machine that the client has connected to."""
        host = _split_host_header(host_header)[0]
        return (
            host in self.schemes
            or is_loopback(host)
            or (host == normalize_host(connected_to) and not is_wildcard(host))
        )

    def is_own_origin(self, origin: str, host_header: str) -> bool:
        """Whether this Origin is that of the page with this Host: scheme, host and port."""
        scheme, separator, rest = origin.partition("://")
        default_port = _WEB_PORTS.get(scheme)
        if not separator or default_port is None:
            return False
        host, port = _split_host_header(host_header)
        origin_host, origin_port = _split_host_header(rest)
        return (
            scheme in self.schemes.get(host, {"http"})
            and host == origin_host != ""
            and (port or default_port) == (origin_port or default_port)
        )


def read_allowed_hosts(texts: Iterable[str]) -> AllowedHosts:
    """From HOST or https://HOST, as given with --allowed-host. Raises BadValue."""
    hosts = AllowedHosts(schemes={})
    for text in texts:
        try:
            scheme, host = _read_allowed_host(text)
        except ValueError as error:
            raise BadValue(
                f"allowed host {text!r}: {error}; it takes HOST without a port, or https://HOST"
            ) from None
        hosts = hosts.including(host, scheme)
    return hosts


def _read_allowed_host(text: str) -> tuple[str, str]:
    scheme, separator, host = text.rpartition("://")
    if separator and scheme not in _WEB_PORTS:
        raise ValueError("only http:// and https:// are supported")
    host = host.strip("[]")
    check_host(host)
    if is_wildcard(host):
        raise ValueError("a wildcard address is no name of a page")
    return scheme or "http", host


def _split_host_header(text: str) -> tuple[str, int | None]:
    """The normalized host, empty if it is malformed, and the port."""
    found = _HOST_AND_PORT.fullmatch(text)
    if found is None:
        return "", None
    return normalize_host(found[1]), None if found[2] is None else int(found[2])
