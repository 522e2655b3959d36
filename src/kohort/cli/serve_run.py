"""Runs the node of `kohort serve`. It imports no Typer, so that a node starts fast."""

import logging
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from kohort.cli.serve_args import ServeOptions
from kohort.log.errors import LogError
from kohort.node.addresses import HttpEndpoint, NodeAddresses
from kohort.node.broker import Address
from kohort.node.config import read_settings, split_address, with_advertised
from kohort.node.main import serve as serve_node
from kohort.node.ready_file import ReadyFile
from kohort.node.server import NodeFailed, NodeStartError
from kohort.settings.hosts import AllowedHosts, read_allowed_hosts
from kohort.settings.readers import INT_MAX, BadValue, read_number

OnReady = Callable[[Address, Address], None]
"""Takes the address to connect to, and the one that the node advertises."""


def _ignore(_: Address, __: Address) -> None:
    """Nothing starts beside the node."""


def _ignore_loading(_: NodeAddresses) -> None:
    """There is no ready file."""


_NODE_ONLY: Final[AbstractContextManager[OnReady]] = nullcontext(_ignore)


def serve(options: ServeOptions, beside: AbstractContextManager[OnReady] = _NODE_ONLY) -> int:
    """Serve until SIGTERM or Ctrl-C, and return the exit code.

    `beside` is entered before the node starts; it gives a function that is called when the node is
    ready.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    try:
        host, port = split_address("--listen", options.listen)
        # Checked in any case, because the console gets the same names.
        hosts = read_allowed_hosts(options.allowed_host)
        metrics = _read_endpoint("--metrics", options.metrics, hosts)
        control = _read_endpoint("--control", options.control, hosts)
        stop_at_eof = _read_descriptor(options.stop_at_eof)
        settings = read_settings(options.config, options.set)
        settings = with_advertised(settings, "--advertise", options.advertise)
        ready_file = None if options.ready_file is None else ReadyFile(options.ready_file)
        with beside as start_beside:

            def on_ready(addresses: NodeAddresses) -> None:
                if addresses.control is not None:
                    print(f"kohort control on http://{addresses.control}")
                print(f"kohort ready on {addresses.bootstrap}", flush=True)
                start_beside(addresses.bootstrap, addresses.advertised)

            serve_node(
                host,
                port,
                options.data,
                settings,
                metrics=metrics,
                control=control,
                stop_at_eof=stop_at_eof,
                on_ready=on_ready,
                on_loaded=_ignore_loading if ready_file is None else ready_file.write,
            )
    except (BadValue, NodeStartError, NodeFailed, LogError) as error:
        print(f"kohort: {error}", file=sys.stderr)
        return 1
    return 0


def _read_endpoint(option: str, text: str, hosts: AllowedHosts) -> HttpEndpoint | None:
    if not text:
        return None
    host, port = split_address(option, text)
    return HttpEndpoint(listen=Address(host=host, port=port), allowed_hosts=hosts)


def _read_descriptor(text: str) -> int | None:
    if not text:
        return None
    try:
        descriptor = read_number(text, 0, INT_MAX)
        os.fstat(descriptor)
    except (ValueError, OSError):
        raise BadValue(
            f"--stop-at-eof {text}: expected the number of an open file descriptor, for example 0"
        ) from None
    return descriptor
