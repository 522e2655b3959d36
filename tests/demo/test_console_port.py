"""The demo's console listens on the given address or on the first free port."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.demo.console_port import PORT, ConsoleUnavailable, bind_console


@pytest.fixture
def busy_address() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def test_two_consoles_use_different_ports(tmp_path: Path) -> None:
    first = bind_console(None, tmp_path)
    second = bind_console(None, tmp_path)

    ports = [port_of(first.url), port_of(second.url)]
    first.stop()
    second.stop()

    assert PORT <= ports[0] < ports[1] < PORT + 100


def test_busy_port_is_rejected(busy_address: str, tmp_path: Path) -> None:
    error = f"cannot listen on {busy_address}: Address already in use"
    with pytest.raises(ConsoleUnavailable, match=error):
        bind_console(busy_address, tmp_path)


def test_invalid_address_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(ConsoleUnavailable, match="'here' is not HOST:PORT"):
        bind_console("here", tmp_path)
