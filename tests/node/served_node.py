"""Runs `kohort serve` as a process."""

import re
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kohort.node.broker import Address
from tests.wait import wait_until

READY = re.compile(r"^kohort ready on (?P<host>.+):(?P<port>\d+)$", re.MULTILINE)


class ServedNode:
    """A node process that runs until it is stopped or killed.

    Its output goes to files: a full pipe would block it.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, object] | None = None,
        *,
        port: int = 0,
        arguments: Sequence[str] = (),
        is_awaited: bool = True,
    ) -> None:
        self.data = directory / "data"
        self._said = directory / "stdout"
        self._journal = directory / "stderr"
        given = [
            word
            for name, value in (settings or {}).items()
            for word in ("--set", f"{name}={value}")
        ]
        words = ("--listen", f"127.0.0.1:{port}", "--data", str(self.data), *given, *arguments)
        with self._said.open("wb") as stdout, self._journal.open("ab") as stderr:
            self._process = subprocess.Popen(
                command(*words), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
            )
        if is_awaited:
            wait_until(self._is_decided, 30, "ready")
            assert self.is_running, f"exit code {self._process.returncode}: {self.log}"

    @property
    def address(self) -> Address:
        ready = READY.search(self.said)
        assert ready is not None, "the node is not ready"
        return Address(host=ready["host"], port=int(ready["port"]))

    @property
    def bootstrap_servers(self) -> str:
        return f"{self.address.host}:{self.address.port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def said(self) -> str:
        return self._said.read_text("utf-8")

    @property
    def log(self) -> str:
        return self._journal.read_text("utf-8")

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self, deadline_s: float = 20.0) -> int:
        """Wait for the process and return its exit code."""
        return self._process.wait(deadline_s)

    def terminate(self) -> None:
        self._process.terminate()

    def stop(self) -> int:
        self.terminate()
        return self.wait()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.is_running:
            self.kill()

    def _is_decided(self) -> bool:
        return not self.is_running or READY.search(self.said) is not None

    # Process information

    @property
    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text("utf-8").split()[1])
        return pages * resource.getpagesize()

    @property
    def open_files(self) -> int:
        return sum(1 for _ in Path(f"/proc/{self.pid}/fd").iterdir())


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "kohort", "serve", *arguments]
