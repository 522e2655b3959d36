"""A node as a process of its own, with the methods of `kohort.Node`."""

from pathlib import Path

from kohort.testing.broker_process import BrokerProcess
from kohort.testing.local_node import LocalNode


class ProcessNode(LocalNode[BrokerProcess]):
    """Runs `kohort serve` as a child process: `kohort.Node.process(...)` makes one.

    `kill` is SIGKILL. The child process stops when this process ends, in whatever way.
    """

    @property
    def pid(self) -> int:
        """The process id of the running node."""
        return self._get_runner().pid

    def _make_runner(self, data: Path) -> BrokerProcess:
        return BrokerProcess(
            self._settings,
            data,
            metrics=self._metrics,
            control=self._control,
            allowed_hosts=self._allowed_hosts,
        )
