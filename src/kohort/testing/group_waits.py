"""The waits that a test calls, on a node, in a namespace or on a real cluster."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from kohort.admin.group_monitor.views import ObservedRebalance
    from kohort.conditions.group_snapshot import GroupSnapshot
    from kohort.testing.waits import GroupCommit

Body: TypeAlias = Mapping[str, Any]
"""The parameters of a control operation."""


class GroupWaits(ABC):
    """Each call blocks until a condition holds, or raises `WaitTimeout`. Invalid arguments raise
    ValueError. Timeouts are in seconds of real time, whatever the clock of the node is."""

    @abstractmethod
    def _wait_group(self, body: Body) -> "GroupSnapshot": ...

    @abstractmethod
    def _wait_rebalance(self, body: Body) -> "ObservedRebalance": ...

    @abstractmethod
    def _wait_commit(self, body: Body) -> "GroupCommit": ...

    def wait_for(
        self,
        group: str,
        *,
        members: int | None = None,
        stable: bool | None = None,
        state: str | None = None,
        lag: int | None = None,
        assigned: int | None = None,
        topics: Iterable[str] | None = None,
        timeout: float = 10.0,
    ) -> "GroupSnapshot":
        """Block until all that is given holds at the same time.

        `members` and `assigned` (partitions of all members) are exact, `lag` is a maximum, of
        `topics` if they are given. `stable` means that all members have their assignment and no
        rebalance is about to begin.
        """
        body = {
            "group": group,
            "members": members,
            "stable": stable,
            "state": state,
            "lag": lag,
            "assigned": assigned,
            "topics": None if topics is None else list(topics),
            "timeout": timeout,
        }
        return self._wait_group(body)

    def wait_for_rebalance(
        self, group: str, *, after: int | None = None, timeout: float = 10.0
    ) -> "ObservedRebalance":
        """Block until a rebalance to a later generation than `after` has completed.

        Without `after` it is the next one to complete.
        """
        return self._wait_rebalance({"group": group, "after": after, "timeout": timeout})

    def wait_for_commit(
        self,
        group: str,
        *,
        topic: str | None = None,
        partition: int | None = None,
        offset: int | None = None,
        timeout: float = 10.0,
    ) -> "GroupCommit":
        """Block until the group commits.

        With `offset`: until the committed offset of the partition is at least this.
        """
        body = {
            "group": group,
            "topic": topic,
            "partition": partition,
            "offset": offset,
            "timeout": timeout,
        }
        return self._wait_commit(body)
