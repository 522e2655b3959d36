"""kohort serve: the broker, in the foreground, until it is told to stop."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Annotated

import typer

from kohort.log.errors import LogError
from kohort.node.broker import Address
from kohort.node.config import SETTINGS, BadSetting, read_settings, split_address, text_of
from kohort.node.foreground import serve
from kohort.node.server import CannotStart, GaveUp


def run(
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where to listen; port 0 takes a free one.")
    ] = "127.0.0.1:9092",
    data: Annotated[
        Path, typer.Option(metavar="DIR", help="Where everything is kept; made if missing.")
    ] = Path("kohort-data"),
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
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    try:
        host, port = split_address("--listen", listen)
        page = _read_metrics(metrics)
        chosen = read_settings(config, tuple(set_ or ()))
        with _console(console) as start_console:

            def on_ready(address: Address) -> None:
                _say_ready(address)
                start_console(address)

            serve(host, port, data, chosen, metrics=page, on_ready=on_ready)
    except (BadSetting, CannotStart, GaveUp, LogError) as error:
        typer.echo(f"kohort: {error}", err=True)
        raise typer.Exit(1) from None


def _say_ready(address: Address) -> None:
    typer.echo(f"kohort ready on {address.host}:{address.port}")
    sys.stdout.flush()


@contextmanager
def _console(listen: str) -> Iterator[Callable[[Address], None]]:
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

    def start_soon(address: Address) -> None:
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


def _read_metrics(text: str) -> Address | None:
    if not text:
        return None
    host, port = split_address("--metrics", text)
    return Address(host=host, port=port)


def _list_settings() -> None:
    for setting in SETTINGS.values():
        typer.echo(f"{setting.name}={text_of(setting.default)}\n    {setting.meaning}")
