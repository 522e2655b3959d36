"""The file of `kohort serve --ready-file`: where a node can be reached, as a JSON object."""

import json
import os
from pathlib import Path

from kohort.node.addresses import NodeAddresses
from kohort.node.broker import Address
from kohort.node.server import NodeStartError


class ReadyFile:
    """Removes the file of an earlier node; `write` creates it when the node is ready."""

    def __init__(self, path: Path) -> None:
        """Raises NodeStartError."""
        self._path = path
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise self._failure(error) from error

    def write(self, addresses: NodeAddresses) -> None:
        """A program that waits for the file never sees a part of it. Raises NodeStartError."""
        content = {
            "bootstrap_servers": str(addresses.bootstrap),
            "control_url": _url(addresses.control),
            "metrics_url": _url(addresses.metrics, "/metrics"),
            "pid": os.getpid(),
        }
        unfinished = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            unfinished.write_text(json.dumps(content) + "\n", "utf-8")
            unfinished.replace(self._path)
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> NodeStartError:
        return NodeStartError(f"--ready-file {self._path} cannot be written: {error.strerror}")


def _url(address: Address | None, path: str = "") -> str | None:
    return None if address is None else f"http://{address}{path}"
