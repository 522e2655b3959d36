"""Unique names for the topics and groups of one test, on a cluster that tests share."""

import logging
import re
import secrets
from collections import Counter
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from kohort.admin import groups as group_admin
from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import AdminError, GroupNotEmpty, NoSuchGroup, NoSuchTopic
from kohort.testing.cluster_handle import ClusterHandle
from kohort.testing.control_channel import ControlChannel
from kohort.types import GroupId, Offset

if TYPE_CHECKING:
    from kohort.admin.group_monitor.views import ObservedRebalance
    from kohort.testing.clock import NodeClock
    from kohort.testing.faults import Faults

_FIRST: Final = Offset(0)
_LOGGER: Final = logging.getLogger("kohort.testing")

_UNREACHABLE: Final = (AdminError, RuntimeError)
"""What the helpers raise; RuntimeError if the node was stopped."""

_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9]+")
"""Dots and underscores are not used: Kafka refuses names that differ only in them."""

_PREFIX_MAX: Final = 80
"""Characters of the test's name. Kafka's limit for the name of a topic is 249."""


class Namespace(ClusterHandle):
    """A cluster with unique names: `topic` creates one, `group` invents one, `close` deletes both.

    `label` is what names begin with, such as the name of the test.
    """

    def __init__(self, cluster: ClusterHandle, label: str = "test") -> None:
        super().__init__()
        self.node = cluster
        """The cluster in which the names are unique."""
        self._prefix = f"{_plain(label)[:_PREFIX_MAX]}-{secrets.token_hex(4)}"
        self._used: Counter[str] = Counter()
        self._topics: list[str] = []
        self._groups: list[GroupId] = []
        self._events_start = cluster.event_position()
        self._faults: Faults | None = None

    @property
    def bootstrap_servers(self) -> str:
        return self.node.bootstrap_servers

    def start(self) -> Self:
        self.node.start()
        return self

    def kill(self) -> None:
        self.node.kill()

    def restart(self) -> None:
        self.node.restart()

    @property
    def _channel(self) -> ControlChannel | None:
        return self.node._channel  # noqa: SLF001  # a handle like this one

    @property
    def faults(self) -> "Faults":
        """Faults of the node. Those that are added here end with the namespace."""
        if self._faults is None:
            self._faults = self.node.faults
        return self._faults

    @property
    def clock(self) -> "NodeClock":
        return self.node.clock

    def _cluster(self) -> Cluster:
        return self.node._cluster()  # noqa: SLF001  # a handle like this one

    def all_rebalances(
        self, start: Offset = _FIRST
    ) -> "dict[GroupId, tuple[ObservedRebalance, ...]]":
        """The recorded rebalances by group id, since this namespace was made."""
        return self.node.all_rebalances(max(start, self._events_start))

    def topic(
        self,
        name: str = "topic",
        *,
        partitions: int = 1,
        settings: Mapping[str, object] | None = None,
    ) -> str:
        """Create a topic with a unique name that ends with `name`, and return its name."""
        unique = self._unique(name)
        self.node.create_topic(unique, partitions=partitions, settings=settings)
        self._topics.append(unique)
        return unique

    def group(self, name: str = "group") -> str:
        """A unique group id that ends with `name`."""
        unique = self._unique(name)
        self._groups.append(GroupId(unique))
        return unique

    def close(self) -> None:
        """Delete the topics and groups, and remove the faults. Failures are logged: they are not
        failures of the test."""
        if self._faults is not None:
            self._faults.discard_added()
        try:
            self._delete_groups()
        except _UNREACHABLE as error:
            _LOGGER.warning("%s", error)
        self._groups.clear()
        for topic in self._topics:
            try:
                self.node.delete_topic(topic)
            except NoSuchTopic:
                pass  # the test has deleted it
            except _UNREACHABLE as error:
                _LOGGER.warning("%s", error)
        self._topics.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _unique(self, name: str) -> str:
        plain = _plain(name)
        self._used[plain] += 1
        count = self._used[plain]
        return f"{self._prefix}-{plain}" + (f"-{count}" if count > 1 else "")

    def _delete_groups(self) -> None:
        """Remove members first that are still connected; a live one may join again."""
        if not self._groups:
            return
        cluster = self._cluster()
        errors = group_admin.delete_groups(cluster, self._groups)
        occupied = [each for each, error in errors.items() if isinstance(error, GroupNotEmpty)]
        for group_id in occupied:
            members = [each.member_id for each in self.members(group_id)]
            group_admin.remove_members(
                cluster, group_id, member_ids=members, reason="the test has ended"
            )
        if occupied:
            errors |= group_admin.delete_groups(cluster, occupied)
        for error in errors.values():
            if error is not None and not isinstance(error, NoSuchGroup):
                _LOGGER.warning("%s", error)


def _plain(text: str) -> str:
    return _NOT_IN_A_NAME.sub("-", text).strip("-") or "unnamed"
