"""Check that a bootstrap server accepts connections, before a consumer or Spark starts.

A consumer retries until its own timeout and does not report why the connections failed.
"""

import socket
import time
from typing import Final

from kohort.client.options import read_options
from kohort.pipeline.errors import BrokerUnavailable
from kohort.pipeline.source.options import SourceOptions, consumer_config

_RETRY_S: Final = 0.2
"""A broker that restarts refuses connections for a short time."""

_CONNECT_S: Final = 5.0
"""For one address, so that others are tried, too."""


def check_reachable(options: SourceOptions) -> None:
    """Raise BrokerUnavailable if no address accepts a connection within request.timeout.ms."""
    config = read_options([*consumer_config(options).items()])
    timeout_s = min(config.request_timeout_ms, config.default_api_timeout_ms) / 1000
    deadline = time.monotonic() + timeout_s
    while True:
        reasons = []
        for host, port in config.bootstrap_servers:
            left_s = max(0.1, min(_CONNECT_S, deadline - time.monotonic()))
            reason = _try_connect(host, port, left_s)
            if reason is None:
                return
            reasons.append(f"{host}:{port} ({reason})")
        if time.monotonic() + _RETRY_S > deadline:
            raise BrokerUnavailable(
                f"no broker could be reached within {timeout_s:g} s: {', '.join(reasons)}"
            )
        time.sleep(_RETRY_S)


def _try_connect(host: str, port: int, timeout_s: float) -> str | None:
    """Why the connection failed; None if it succeeded."""
    try:
        with socket.create_connection((host, port), timeout_s):
            return None
    except TimeoutError:
        return "connection timed out"
    except OSError as error:
        return (error.strerror or str(error)).lower()
