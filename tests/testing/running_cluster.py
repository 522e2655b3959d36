"""The helpers of a cluster, over a node that the test starts and stops itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import kohort
from kohort.testing.cluster_handle import ClusterHandle

SETTINGS = {"group.initial.rebalance.delay.ms": 0, "kohort.durability": "os"}


class RunningCluster(ClusterHandle):
    def __init__(self, data: Path) -> None:
        super().__init__()
        self._data = data
        self._node = kohort.Node(data=data, settings=SETTINGS).start()

    @property
    def bootstrap_servers(self) -> str:
        return self._node.bootstrap_servers

    def restart(self, *, port: int) -> None:
        self._node.stop()
        self._node = kohort.Node(data=self._data, settings=SETTINGS, port=port).start()

    def close(self) -> None:
        self.disconnect()
        self._node.stop()


@contextmanager
def running_cluster(data: Path) -> Iterator[RunningCluster]:
    cluster = RunningCluster(data)
    try:
        yield cluster
    finally:
        cluster.close()
