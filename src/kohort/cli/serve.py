"""kohort serve: the broker, in the foreground, until it is told to stop."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kohort.cli.wish import Wish

if TYPE_CHECKING:
    from kohort.cli.serving import OnReady
    from kohort.node.broker import Address

_DEFAULT: Final = Wish()


def run(
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where to listen; port 0 takes a free one.")
    ] = _DEFAULT.listen,
    data: Annotated[
        Path, typer.Option(metavar="DIR", help="Where everything is kept; made if missing.")
    ] = _DEFAULT.data,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting; may be given many times."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Settings from a TOML file.")
    ] = None,
    metrics: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Serve figures for Prometheus there, at /metrics."),
    ] = "",
    *,
    console: Annotated[
        str,
        typer.Option(metavar="HOST:PORT", help="Serve the console there, as kohort console does."),
    ] = "",
    settings: Annotated[
        bool, typer.Option("--settings", help="List every setting that --set takes, and stop.")
    ] = False,
) -> None:
    """Serve Kafka clients until SIGTERM or Ctrl-C."""
    if settings:
        _list_settings()
        return
    from kohort.cli.serving import serve  # noqa: PLC0415  # other verbs need no node

    wish = Wish(listen=listen, data=data, set=tuple(set_ or ()), config=config, metrics=metrics)
    raise typer.Exit(serve(wish, _console(console)))


@contextmanager
def _console(listen: str) -> "Iterator[OnReady]":
    """What starts the console, once the node is ready; it ends after the node."""
    if not listen:
        yield lambda _: None
        return
    from kohort.admin.errors import AdminError, WrongWish  # noqa: PLC0415  # most nodes need none
    from kohort.cli.console import check_libraries, open_console, refuse, say_ready  # noqa: PLC0415
    from kohort.console.server import CannotListen  # noqa: PLC0415

    check_libraries()
    try:
        # Before the node starts: a port that is taken is told at once.
        console = open_console("", listen)
    except WrongWish as error:
        raise typer.BadParameter(str(error), param_hint="--console") from None
    except CannotListen as error:
        refuse(f"the console {error}")
    # Its consumer loses the node whenever the node stops; the pages say so.
    logging.getLogger("kohort.consumer").setLevel(logging.ERROR)
    threads: list[Thread] = []

    def start() -> None:
        try:
            console.start()
        except AdminError as error:
            typer.echo(f"kohort: the console cannot start: {error}", err=True)
        else:
            say_ready(console)
            sys.stdout.flush()

    def start_soon(address: "Address") -> None:
        # On a thread: the node answers only once its loop goes on.
        console.bootstrap = f"{_reachable(address.host)}:{address.port}"
        threads.append(Thread(target=start, name="kohort-console-start", daemon=True))
        threads[0].start()

    try:
        yield start_soon
    finally:
        for thread in threads:
            thread.join()
        console.stop()


def _reachable(host: str) -> str:
    """Whoever listens everywhere is also here."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104


def _list_settings() -> None:
    from kohort.node.config import SETTINGS, text_of  # noqa: PLC0415  # as above

    for setting in SETTINGS.values():
        typer.echo(f"{setting.name}={text_of(setting.default)}\n    {setting.meaning}")
