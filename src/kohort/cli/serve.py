"""kohort serve: the broker, in the foreground, until it is told to stop."""

import logging
import sys
from pathlib import Path
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
        serve(host, port, data, chosen, metrics=page, on_ready=_say_ready)
    except (BadSetting, CannotStart, GaveUp, LogError) as error:
        typer.echo(f"kohort: {error}", err=True)
        raise typer.Exit(1) from None


def _say_ready(address: Address) -> None:
    typer.echo(f"kohort ready on {address.host}:{address.port}")
    sys.stdout.flush()


def _read_metrics(text: str) -> Address | None:
    if not text:
        return None
    host, port = split_address("--metrics", text)
    return Address(host=host, port=port)


def _list_settings() -> None:
    for setting in SETTINGS.values():
        typer.echo(f"{setting.name}={text_of(setting.default)}\n    {setting.meaning}")
