"""kohort console: groups, rebalances and lag of any Kafka in a browser, live, until Ctrl-C."""

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from kohort.console.server import Console

_Bootstrap = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="The cluster; several with commas between them.")
]
_Listen = Annotated[
    str, typer.Option(metavar="HOST:PORT", help="Where the pages are; port 0 takes a free one.")
]
_Token = Annotated[
    str | None,
    typer.Option(
        envvar="KOHORT_CONSOLE_TOKEN",
        help="What changes must be signed with. Elsewhere than on loopback one is made if missing.",
    ),
]
_Forensics = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Tables of kohort pipeline forensics, to show findings of."),
]
_CommandConfig = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A properties file with options for the connection."),
]


def run(
    *,
    bootstrap: _Bootstrap = "localhost:9092",
    listen: _Listen = "127.0.0.1:8080",
    token: _Token = None,
    forensics: _Forensics = None,
    command_config: _CommandConfig = None,
) -> None:
    """Show the groups of any Kafka in a browser, live.

    Every page has a JSON twin: the same address with .json. It listens on loopback unless told
    otherwise; then changes need a token.

    Example: kohort console --bootstrap localhost:9092 --listen 127.0.0.1:8080
    """
    check_libraries()
    from kohort.admin.errors import AdminError, WrongWish  # noqa: PLC0415  # other verbs need none
    from kohort.console.server import CannotListen  # noqa: PLC0415

    try:
        console = open_console(bootstrap, listen, token, forensics, command_config).start()
    except WrongWish as error:
        raise typer.BadParameter(str(error)) from None
    except (AdminError, CannotListen) as error:
        refuse(str(error))
    try:
        say_ready(console, is_token_told=token is None)
        _wait_for_signal()
    finally:
        console.stop()


def open_console(
    bootstrap: str,
    listen: str,
    token: str | None = None,
    forensics: Path | None = None,
    command_config: Path | None = None,
) -> "Console":
    """Bound to its address, and not yet started."""
    from kohort.admin.errors import WrongWish  # noqa: PLC0415  # as above
    from kohort.admin.options import read_properties  # noqa: PLC0415
    from kohort.console.server import Console  # noqa: PLC0415

    options = {}
    if command_config is not None:
        try:
            options = read_properties(command_config.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise WrongWish(f"{command_config} cannot be read: {error}") from None
    if forensics is not None and not forensics.is_dir():
        raise WrongWish(f"there is no directory {forensics}")
    return Console(
        bootstrap,
        listen=listen,
        token=token,
        forensics=None if forensics is None else str(forensics),
        options=options,
    )


def check_libraries() -> None:
    """They are an extra: a node alone needs none of them."""
    from importlib.util import find_spec  # noqa: PLC0415  # as above

    missing = [each for each in ("starlette", "jinja2", "uvicorn") if find_spec(each) is None]
    if missing:
        refuse(f"the console needs {', '.join(missing)}: install kohort[console]")


def say_ready(console: "Console", *, is_token_told: bool = True) -> None:
    """A token that somebody gave is theirs to know."""
    typer.echo(f"kohort console ready on {console.url}")
    if is_token_told and console.token is not None:
        typer.echo(f"changes need the token {console.token}")


def refuse(reason: str) -> NoReturn:
    typer.echo(f"kohort: {reason}", err=True)
    raise typer.Exit(1)


def _wait_for_signal() -> None:
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: told.set())
    told.wait()
