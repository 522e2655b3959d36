"""A broker as a child process: `kohort serve`, with its output in files.

The standard input of the process is a pipe from this process. The process stops when the pipe is
closed, so that it does not outlive this one, even if this one is killed.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

from kohort.node.addresses import HttpEndpoint
from kohort.node.broker import Address
from kohort.node.config import BrokerConfig, format_value, split_address
from kohort.node.server import NodeFailed, NodeStartError
from kohort.settings.hosts import format_address
from kohort.testing.http_control import HttpControl
from kohort.testing.node_directory import NodeDirectory

_START_S_MAX: Final = 90.0
_STOP_S_MAX: Final = 60.0
_POLL_S: Final = 0.005

_LOG_LINES_SHOWN: Final = 20


class BrokerProcess:
    """Runs a process once: `start`, then `stop` or `kill`."""

    def __init__(
        self,
        settings: BrokerConfig,
        data: Path,
        *,
        metrics: HttpEndpoint | None = None,
        control: HttpEndpoint | None = None,
        allowed_hosts: Sequence[str] = (),
    ) -> None:
        self._options = {
            "data": str(data),
            "metrics": None if metrics is None else str(metrics.listen),
            "control": "127.0.0.1:0" if control is None else str(control.listen),
        }
        self._pairs = [f"{name}={format_value(each)}" for name, each in settings.given.items()]
        self._allowed_hosts = allowed_hosts
        self._output = NodeDirectory(None)
        self._process: subprocess.Popen[bytes] | None = None
        self.metrics_address: Address | None = None
        self.control_address: Address | None = None

    def start(self, host: str, port: int) -> Address:
        """Return the address for clients when the broker listens and its groups are loaded."""
        output = self._output.make()
        ready, log = output / "ready.json", output / "log"
        words = {**self._options, "listen": format_address(host, port), "ready-file": str(ready)}
        options = [(name, text) for name, text in words.items() if text is not None]
        options += [("set", pair) for pair in self._pairs]
        options += [("allowed-host", name) for name in self._allowed_hosts]
        with log.open("wb") as stderr:
            self._process = process = subprocess.Popen(  # noqa: S603  # our own program
                # -P: a module in the working directory must not replace one of the library.
                [sys.executable, "-P", "-m", "kohort", "serve", "--stop-at-eof=0"]
                + [f"--{name}={text}" for name, text in options],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                # Ctrl-C in a terminal is for this process, which then stops the node.
                start_new_session=True,
            )
        self._await(process, ready)
        return self._read_addresses(ready)

    def _await(self, process: "subprocess.Popen[bytes]", ready: Path) -> None:
        end = monotonic() + _START_S_MAX
        while not ready.exists():
            if process.poll() is not None:
                raise NodeStartError(f"the node cannot start: {self._describe_exit(process)}")
            if monotonic() > end:
                self.kill()
                raise NodeStartError(
                    f"the node was not ready within {_START_S_MAX:.0f} s: {self._log_end}"
                )
            sleep(_POLL_S)

    def _read_addresses(self, ready: Path) -> Address:
        found = json.loads(ready.read_text("utf-8"))
        self._control = HttpControl(found["control_url"])
        self.control_address = _address_in(found["control_url"])
        if found["metrics_url"] is not None:
            self.metrics_address = _address_in(found["metrics_url"])
        return _address(found["bootstrap_servers"])

    @property
    def pid(self) -> int:
        assert self._process is not None, "the process has been started"
        return self._process.pid

    @property
    def failure(self) -> BaseException | None:
        """The reason why the process has ended by itself, if it has."""
        process = self._process
        if process is None or process.poll() is None:
            return None
        return NodeFailed(f"the node has stopped: {self._describe_exit(process)}")

    def request(self, operation: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._control.request(operation, body)

    def stop(self) -> None:
        """Shut down cleanly. Everything acknowledged is stored."""
        process = self._process
        if process is None:
            return
        try:
            failure = self.failure
            if failure is not None:
                raise failure
            process.terminate()
            self._wait(process)
            if process.returncode != 0:
                raise NodeFailed(
                    f"the node failed while it stopped: {self._describe_exit(process)}"
                )
        finally:
            self.kill()

    def _wait(self, process: "subprocess.Popen[bytes]") -> None:
        try:
            process.wait(_STOP_S_MAX)
        except subprocess.TimeoutExpired:
            raise NodeFailed(
                f"the node did not stop within {_STOP_S_MAX:.0f} s and is killed: {self._log_end}"
            ) from None

    def kill(self) -> None:
        """End the process with SIGKILL, if it runs, and remove its output."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            assert process.stdin is not None, "it is a pipe"
            process.stdin.close()
        self._output.remove()

    def _describe_exit(self, process: "subprocess.Popen[bytes]") -> str:
        return f"exit code {process.returncode}; its last log lines are:\n{self._log_end}"

    @property
    def _log_end(self) -> str:
        text = (self._output.make() / "log").read_text("utf-8", "replace")
        return "\n".join(text.splitlines()[-_LOG_LINES_SHOWN:])


def _address(text: str) -> Address:
    host, port = split_address("the address of the node", text)
    return Address(host=host, port=port)


def _address_in(url: str) -> Address:
    return _address(url.removeprefix("http://").partition("/")[0])
