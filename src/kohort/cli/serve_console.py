"""Runs the console in the process of `kohort serve --console`."""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Thread

import typer

from kohort.admin.errors import AdminError, InvalidRequest
from kohort.cli.console import open_console, print_ready
from kohort.cli.messages import fail, print_stderr
from kohort.cli.serve_run import OnReady
from kohort.console.server import CannotListen
from kohort.node.broker import Address


@contextmanager
def console_beside_node(listen: str, allowed_hosts: Sequence[str]) -> Iterator[OnReady]:
    """Give the function that starts the console once the node is ready; stop it after the node."""
    try:
        # The port is bound before the node starts, so that a busy port is reported at once.
        console = open_console("", listen, allowed_hosts=allowed_hosts)
    except InvalidRequest as error:
        raise typer.BadParameter(str(error), param_hint="--console") from None
    except CannotListen as error:
        fail(f"the console {error}")
    # Its consumer loses the connection whenever the node stops. The pages show that.
    logging.getLogger("kohort.consumer").setLevel(logging.ERROR)
    threads: list[Thread] = []

    def start() -> None:
        try:
            console.start()
        except AdminError as error:
            print_stderr(f"the console cannot start: {error}")
        else:
            print_ready(console)
            sys.stdout.flush()

    def start_in_thread(address: Address, advertised: Address) -> None:
        # The node answers only after this callback has returned to its event loop.
        console.bootstrap = str(address)
        console.allow_host(advertised.host)
        threads.append(Thread(target=start, name="kohort-console-start", daemon=True))
        threads[0].start()

    try:
        yield start_in_thread
    finally:
        for thread in threads:
            thread.join()
        console.stop()
