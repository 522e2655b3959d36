"""The life cycle of a node that a program starts for itself: start, stop, restart and kill.

`Node` runs it on a thread, `ProcessNode` as a process of its own.
"""

import asyncio
import os
import threading
import weakref
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Generic, Literal, Protocol, Self, TypeVar

from kohort.node.addresses import HttpEndpoint
from kohort.node.broker import Address
from kohort.node.config import BrokerConfig, split_address, with_advertised
from kohort.settings.hosts import read_allowed_hosts
from kohort.settings.readers import BadValue, read_number
from kohort.testing.cluster_handle import ClusterHandle
from kohort.testing.control_channel import ControlChannel
from kohort.testing.node_directory import NodeDirectory
from kohort.testing.node_settings import node_settings

_PORT_MAX: Final = 65_535

_NOT_RUNNING: Final = "the node is not running; use it as a context manager or start()"


class NodeRunner(Protocol):
    """Runs a broker once."""

    @property
    def failure(self) -> BaseException | None:
        """The error that stopped the broker, if any."""

    @property
    def metrics_address(self) -> Address | None: ...

    @property
    def control_address(self) -> Address | None: ...

    def start(self, host: str, port: int, /) -> Address:
        """Return the address for clients when the broker is ready."""

    def stop(self) -> None:
        """Shut down cleanly. Raises `failure`."""

    def kill(self) -> None:
        """Stop at once."""

    def request(self, operation: str, body: Mapping[str, Any], /) -> Mapping[str, Any]: ...


R = TypeVar("R", bound=NodeRunner)


class LocalNode(ClusterHandle, Generic[R]):
    """A node with the arguments and the life cycle that `Node` and `ProcessNode` share."""

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        advertise: str | None = None,
        data: str | Path | None = None,
        settings: Mapping[str, object] | None = None,
        like_kafka: bool = False,
        clock: Literal["real", "manual"] = "real",
        metrics: str | None = None,
        control: str | None = None,
        allowed_hosts: Sequence[str] = (),
    ) -> None:
        super().__init__()
        texts = node_settings(settings or {}, like_kafka=like_kafka, clock=clock)
        self._settings = with_advertised(BrokerConfig(texts), "advertise", advertise or "")
        self._host, self._port = host, _read_port(port)
        self._directory = NodeDirectory(None if data is None else Path(data).absolute())
        self._allowed_hosts = tuple(allowed_hosts)
        self._metrics = self._read_endpoint("metrics", metrics)
        self._control = self._read_endpoint("control", control)
        self._lock = threading.RLock()
        """Of start, stop, restart, kill and close."""
        self._runner: R | None = None
        self._address: Address | None = None
        self._owner: int | None = None
        """The process that has started the node."""

    def _read_endpoint(self, name: str, text: str | None) -> HttpEndpoint | None:
        hosts = read_allowed_hosts(self._allowed_hosts)
        if text is None:
            return None
        host, port = split_address(name, text)
        return HttpEndpoint(listen=Address(host=host, port=port), allowed_hosts=hosts)

    @abstractmethod
    def _make_runner(self, data: Path) -> R: ...

    # Addresses

    @property
    def bootstrap_servers(self) -> str:
        """The `bootstrap.servers` for Kafka clients. Also known in a forked child."""
        if self._address is None:
            raise RuntimeError(_NOT_RUNNING)
        return str(self._address)

    @property
    def metrics_url(self) -> str:
        """The URL of the metrics page, if it was requested."""
        address = None if self._runner is None else self._runner.metrics_address
        if address is None:
            raise RuntimeError("no metrics are served; start the node with metrics='127.0.0.1:0'")
        return f"http://{address}/metrics"

    @property
    def control_url(self) -> str:
        """The URL of the control operations, if it was requested."""
        address = None if self._runner is None else self._runner.control_address
        if address is None:
            raise RuntimeError("no control URL; start the node with control='127.0.0.1:0'")
        return f"http://{address}"

    # Life cycle

    @property
    def is_running(self) -> bool:
        """Whether it was started and not stopped. It may have failed since: see `failure`."""
        return self._runner is not None

    @property
    def failure(self) -> BaseException | None:
        """The error that stopped the node by itself, if any; `stop` raises it."""
        return None if self._runner is None else self._runner.failure

    def start(self) -> Self:
        """Return when clients can connect and groups are loaded.

        A node that was stopped or killed starts again with its port and its data.
        """
        self._check_owner("start")
        with self._lock:
            if self._runner is not None:
                raise RuntimeError("the node is already running; stop() it first, or restart() it")
            self._owner = os.getpid()
            runner = self._make_runner(self._directory.make())
            try:
                self._address = runner.start(self._host, self._port)
            except BaseException:
                runner.kill()
                raise
            self._runner = runner
            # A node that is no longer used, but runs, is killed before its data is removed.
            self._ending = weakref.finalize(self, _kill, runner, self._owner)
            self._keep_ports(runner)
        return self

    def stop(self) -> None:
        """Shut down cleanly: everything acknowledged is stored. A stopped node stays stopped.

        Raises the error with which the node has stopped by itself, if it has.
        """
        self._check_owner("stop")
        with self._lock:
            runner = self._take_runner()
            if runner is not None:
                runner.stop()

    def kill(self) -> None:
        """Stop as a crash does: no clean shutdown, nothing more is written, clients are cut off."""
        self._check_owner("kill")
        with self._lock:
            runner = self._take_runner()
            if runner is not None:
                runner.kill()

    def restart(self) -> None:
        """Shut down cleanly, and start again with the same port and the same data."""
        self._check_owner("restart")
        with self._lock:
            self.stop()
            self.start()

    def close(self) -> None:
        """Stop, and remove the data if the directory is temporary. Called by `with`.

        It does nothing in a forked child, whose parent has the node.
        """
        if not self._is_owner:
            return
        with self._lock:
            try:
                self.stop()
            finally:
                self._directory.remove()

    def _get_runner(self) -> R:
        if self._runner is None:
            raise RuntimeError(_NOT_RUNNING)
        return self._runner

    def _take_runner(self) -> R | None:
        runner, self._runner, self._address = self._runner, None, None
        if runner is not None:
            self._ending.detach()
            self.disconnect()
        return runner

    def _keep_ports(self, runner: NodeRunner) -> None:
        """The next start uses the ports that this one has selected."""
        assert self._address is not None, "the node has been started"
        self._port = self._address.port
        self._metrics = _with_port(self._metrics, runner.metrics_address)
        self._control = _with_port(self._control, runner.control_address)

    @property
    def _is_owner(self) -> bool:
        return self._owner in (None, os.getpid())

    def _check_owner(self, action: str) -> None:
        # Before the lock: a thread that does not exist in this process may hold it.
        if not self._is_owner:
            raise RuntimeError(
                f"cannot {action} the node: process {self._owner} has started it, and this is its"
                f" forked child {os.getpid()}; clients may use bootstrap_servers here, but only the"
                " parent process controls the node"
            )

    # Control operations

    @property
    def _channel(self) -> ControlChannel:
        return self

    def request(self, operation: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a control operation of the node; any thread may do so. Raises ControlError."""
        self._check_owner(operation)
        return self._get_runner().request(operation, body)

    def reset(self) -> None:
        """Drop all topics and all groups with their members and offsets."""
        self.request("reset", {})

    # Context managers

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        try:
            return await asyncio.to_thread(self.start)
        except asyncio.CancelledError:
            await asyncio.to_thread(self.close)
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await asyncio.to_thread(self.close)


def _kill(runner: NodeRunner, owner: int) -> None:
    if os.getpid() == owner:
        runner.kill()


def _read_port(given: object) -> int:
    try:
        return read_number(given, 0, _PORT_MAX)
    except ValueError as error:
        raise BadValue(f"port {given!r}: {error}; 0 selects a free port") from None


def _with_port(asked: HttpEndpoint | None, address: Address | None) -> HttpEndpoint | None:
    if asked is None or address is None:
        return asked
    listen = Address(host=asked.listen.host, port=address.port)
    return HttpEndpoint(listen=listen, allowed_hosts=asked.allowed_hosts)
