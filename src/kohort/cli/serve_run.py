"""Runs the node of `kohort serve`. It imports no Typer, so that a node starts fast."""

import logging
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from kohort.cli.serve_args import ServeOptions
from kohort.log.errors import LogError
from kohort.node.broker import Address
from kohort.node.config import read_settings, split_address
from kohort.node.main import serve as serve_node
from kohort.node.server import NodeFailed, NodeStartError
from kohort.settings.readers import BadValue

OnReady = Callable[[Address], None]


def _ignore(_: Address) -> None:
    """Nothing starts beside the node."""


_NODE_ONLY: Final[AbstractContextManager[OnReady]] = nullcontext(_ignore)


def serve(options: ServeOptions, beside: AbstractContextManager[OnReady] = _NODE_ONLY) -> int:
    """Serve until SIGTERM or Ctrl-C, and return the exit code.

    `beside` is entered before the node starts; it gives a function that is called with the node's
    address.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    try:
        host, port = split_address("--listen", options.listen)
        metrics = _read_metrics_address(options.metrics)
        settings = read_settings(options.config, options.set)
        with beside as start_beside:

            def on_ready(address: Address) -> None:
                print(f"kohort ready on {address.host}:{address.port}", flush=True)
                start_beside(address)

            serve_node(host, port, options.data, settings, metrics=metrics, on_ready=on_ready)
    except (BadValue, NodeStartError, NodeFailed, LogError) as error:
        print(f"kohort: {error}", file=sys.stderr)
        return 1
    return 0


def _read_metrics_address(text: str) -> Address | None:
    if not text:
        return None
    host, port = split_address("--metrics", text)
    return Address(host=host, port=port)
