"""kohort console: the web console of any Kafka cluster, until Ctrl-C."""

import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from kohort.admin.errors import AdminError, InvalidRequest
from kohort.cli.messages import fail, print_stderr
from kohort.console.server import CannotListen, Console
from kohort.settings.properties import read_properties
from kohort.settings.readers import BadValue

_EXPOSED: Final = (
    "warning: every machine that can connect to the console can read all groups and records;"
    " listen on 127.0.0.1, or let a firewall admit only your users"
)

_Bootstrap = Annotated[
    str,
    typer.Option(metavar="HOST:PORT", help="Bootstrap servers of the cluster, comma-separated."),
]
_Listen = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Address to listen on. Port 0: any free port.")
]
_Token = Annotated[
    str | None,
    typer.Option(
        envvar="KOHORT_CONSOLE_TOKEN",
        help="Token required for changes. Generated if you listen on a non-loopback address.",
    ),
]
_AllowedHost = Annotated[
    list[str] | None,
    typer.Option(
        metavar="HOST",
        help="Answer to this host name too. May be repeated. https://HOST: behind a TLS proxy.",
    ),
]
_Forensics = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Show findings from these tables of kohort pipeline forensics."
    ),
]
_CommandConfig = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Properties file with connection options."),
]


def run(
    *,
    bootstrap: _Bootstrap = "localhost:9092",
    listen: _Listen = "127.0.0.1:8080",
    token: _Token = None,
    allowed_host: _AllowedHost = None,
    forensics: _Forensics = None,
    command_config: _CommandConfig = None,
) -> None:
    """Serve the web console of a Kafka cluster.

    Every page is also available as JSON: add .json to its address. On a non-loopback address,
    changes need a token. The console answers only to its listening address, to loopback names and
    to allowed hosts.

    Example: kohort console --bootstrap localhost:9092 --listen 127.0.0.1:8080
    """
    try:
        console = open_console(
            bootstrap,
            listen,
            token=token,
            allowed_hosts=allowed_host or (),
            forensics=forensics,
            command_config=command_config,
        ).start()
    except (BadValue, InvalidRequest) as error:
        raise typer.BadParameter(str(error)) from None
    except (AdminError, CannotListen) as error:
        fail(str(error))
    try:
        print_ready(console, is_token_shown=token is None)
        _wait_for_signal()
    finally:
        console.stop()


def open_console(
    bootstrap: str,
    listen: str,
    *,
    token: str | None = None,
    allowed_hosts: Sequence[str] = (),
    forensics: Path | None = None,
    command_config: Path | None = None,
) -> Console:
    """Bind the console to its address without starting it."""
    options = read_properties(command_config)
    if forensics is not None and not forensics.is_dir():
        raise InvalidRequest(f"directory {forensics} does not exist")
    return Console(
        bootstrap,
        listen=listen,
        token=token,
        allowed_hosts=allowed_hosts,
        forensics=None if forensics is None else str(forensics),
        options=options,
    )


def print_ready(console: Console, *, is_token_shown: bool = True) -> None:
    """Print the address, and the token if it was generated."""
    if console.is_exposed:
        print_stderr(_EXPOSED)
    typer.echo(f"kohort console ready on {console.url}")
    if is_token_shown and console.token is not None:
        typer.echo(f"changes need the token {console.token}")


def _wait_for_signal() -> None:
    is_signalled = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: is_signalled.set())
    is_signalled.wait()
