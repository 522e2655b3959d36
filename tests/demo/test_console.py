"""Where the demo's console is: a port of one's own choice, or the first that is free."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.demo.console import PORT, NoConsole, bind_console


@pytest.fixture
def busy() -> Iterator[str]:
    """An address that somebody else has."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def test_two_consoles_find_a_port_each(tmp_path: Path) -> None:
    first = bind_console(None, tmp_path)
    second = bind_console(None, tmp_path)

    ports = [port_of(first.url), port_of(second.url)]
    first.stop()
    second.stop()

    assert PORT <= ports[0] < ports[1] < PORT + 100


def test_a_port_that_was_asked_for_and_is_busy_is_refused(busy: str, tmp_path: Path) -> None:
    with pytest.raises(NoConsole, match=f"cannot listen on {busy}: Address already in use"):
        bind_console(busy, tmp_path)


def test_an_address_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoConsole, match="--listen 'here' is not HOST:PORT"):
        bind_console("here", tmp_path)
