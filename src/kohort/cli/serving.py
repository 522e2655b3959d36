"""What kohort serve does, whoever has read its command line.

Typer is loaded only to say why a node cannot start, never for one that does.
"""

import logging
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from kohort.cli.wish import Wish
from kohort.log.errors import LogError
from kohort.node.broker import Address
from kohort.node.config import BadSetting, read_settings, split_address
from kohort.node.foreground import serve as serve_node
from kohort.node.server import CannotStart, GaveUp

OnReady = Callable[[Address], None]


def _ignore(_: Address) -> None:
    """Nothing else is to be started."""


_ALONE: Final[AbstractContextManager[OnReady]] = nullcontext(_ignore)


def serve(wish: Wish, beside: AbstractContextManager[OnReady] = _ALONE) -> int:
    """Until SIGTERM or Ctrl-C; returns the exit code. What is entered beside it hears of it."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    try:
        host, port = split_address("--listen", wish.listen)
        page = _read_metrics(wish.metrics)
        settings = read_settings(wish.config, wish.set)
        with beside as start_beside:

            def on_ready(address: Address) -> None:
                print(f"kohort ready on {address.host}:{address.port}", flush=True)
                start_beside(address)

            serve_node(host, port, wish.data, settings, metrics=page, on_ready=on_ready)
    except (BadSetting, CannotStart, GaveUp, LogError) as error:
        import typer  # noqa: PLC0415  # who is refused has time

        typer.echo(f"kohort: {error}", err=True)
        return 1
    return 0


def _read_metrics(text: str) -> Address | None:
    if not text:
        return None
    host, port = split_address("--metrics", text)
    return Address(host=host, port=port)
