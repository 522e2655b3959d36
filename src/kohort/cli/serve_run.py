"""Runs the node of `kohort serve`. It imports no Typer, so that a node starts fast."""

import logging
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from kohort.cli.serve_args import ServeOptions
from kohort.log.errors import LogError
from kohort.node.addresses import MetricsPage
from kohort.node.broker import Address
from kohort.node.config import read_settings, split_address, with_advertised
from kohort.node.main import serve as serve_node
from kohort.node.server import NodeFailed, NodeStartError
from kohort.settings.hosts import read_allowed_hosts
from kohort.settings.readers import BadValue

OnReady = Callable[[Address, Address], None]
"""Takes the address to connect to, and the one that the node advertises."""


def _ignore(_: Address, __: Address) -> None:
    """Nothing starts beside the node."""


_NODE_ONLY: Final[AbstractContextManager[OnReady]] = nullcontext(_ignore)


def serve(options: ServeOptions, beside: AbstractContextManager[OnReady] = _NODE_ONLY) -> int:
    """Serve until SIGTERM or Ctrl-C, and return the exit code.

    `beside` is entered before the node starts; it gives a function that is called when the node is
    ready.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    try:
        host, port = split_address("--listen", options.listen)
        metrics = _read_metrics_page(options)
        settings = read_settings(options.config, options.set)
        settings = with_advertised(settings, "--advertise", options.advertise)
        with beside as start_beside:

            def on_ready(address: Address, advertised: Address) -> None:
                print(f"kohort ready on {address}", flush=True)
                start_beside(address, advertised)

            serve_node(host, port, options.data, settings, metrics=metrics, on_ready=on_ready)
    except (BadValue, NodeStartError, NodeFailed, LogError) as error:
        print(f"kohort: {error}", file=sys.stderr)
        return 1
    return 0


def _read_metrics_page(options: ServeOptions) -> MetricsPage | None:
    # Checked in any case, because the console gets the same names.
    hosts = read_allowed_hosts(options.allowed_host)
    if not options.metrics:
        return None
    host, port = split_address("--metrics", options.metrics)
    return MetricsPage(listen=Address(host=host, port=port), allowed_hosts=hosts)
