"""A Kafka cluster that runs somewhere else, with the helpers of `kohort.Node`.

It has no control operations: no faults, no clock and no recorded rebalances.
"""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, NoReturn
from unittest import SkipTest

from kohort.admin import topics as topic_admin
from kohort.admin.errors import ClusterUnreachable
from kohort.events.internal_topics import KOHORT_EVENTS
from kohort.testing.cluster_handle import TIMEOUT_MS, ClusterHandle
from kohort.types import GroupId, Offset, Topic

if TYPE_CHECKING:
    from kohort.admin.group_monitor.views import ObservedRebalance

_FIRST: Final = Offset(0)
_BETWEEN_LOOKS_S: Final = 0.01
_NO_LIFE_CYCLE: Final = "a real Kafka cluster is neither stopped nor started by a test"


class NotOnRealKafka(SkipTest):
    """The test needs a Kohort node. pytest and unittest skip a test that raises it."""


class RealCluster(ClusterHandle):
    """The cluster at HOST:PORT[,HOST:PORT...], over PLAINTEXT."""

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__()
        self._bootstrap_servers = bootstrap_servers

    @property
    def bootstrap_servers(self) -> str:
        return self._bootstrap_servers

    def start(self) -> NoReturn:
        raise NotOnRealKafka(_NO_LIFE_CYCLE)

    def kill(self) -> NoReturn:
        raise NotOnRealKafka(_NO_LIFE_CYCLE)

    def restart(self) -> NoReturn:
        raise NotOnRealKafka(_NO_LIFE_CYCLE)

    @property
    def faults(self) -> NoReturn:
        raise NotOnRealKafka("faults need a Kohort node, and this is a real Kafka cluster")

    @property
    def clock(self) -> NoReturn:
        raise NotOnRealKafka("the clock of a real Kafka cluster cannot be moved")

    def create_topic(
        self, name: str, *, partitions: int = 1, settings: Mapping[str, object] | None = None
    ) -> None:
        super().create_topic(name, partitions=partitions, settings=settings)
        # Kafka responds before all its brokers know the topic.
        self._wait_until(lambda: self._has_leaders(name), f"topic {name!r} has no leader yet")

    def delete_topic(self, name: str) -> None:
        super().delete_topic(name)
        self._wait_until(lambda: name not in self.topics(), f"topic {name!r} is not deleted yet")

    def all_rebalances(
        self, start: Offset = _FIRST
    ) -> "dict[GroupId, tuple[ObservedRebalance, ...]]":
        """Raises `NotOnRealKafka` if the cluster does not record events of groups."""
        if KOHORT_EVENTS not in topic_admin.describe_topics(self._cluster(), [KOHORT_EVENTS]):
            raise NotOnRealKafka(
                "this Kafka cluster does not record rebalances; a Kohort node does"
            )
        return super().all_rebalances(start)

    def _has_leaders(self, topic: str) -> bool:
        found = topic_admin.describe_topics(self._cluster(), [Topic(topic)]).get(Topic(topic))
        return found is not None and all(each.leader is not None for each in found.partitions)

    def _wait_until(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + TIMEOUT_MS / 1000
        while not condition():
            if time.monotonic() > deadline:
                raise ClusterUnreachable(f"{otherwise}, after {TIMEOUT_MS} ms")
            time.sleep(_BETWEEN_LOOKS_S)
