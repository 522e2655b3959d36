"""Faults of a node: wrong or missing responses, members that vanish, a full or slow disk.

    with node.faults.error("Heartbeat", "COORDINATOR_NOT_AVAILABLE", group="billing") as fault:
        ...
    assert fault.count == 1

A rule holds from the call on, until `remove`, the end of the `with` block, `Faults.clear`, or a
restart of the node. The newest rule comes first, and only one rule acts on a request.
"""

import contextlib
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

from kohort.node.control.errors import ControlError
from kohort.testing.control_channel import ControlChannel

Api = str | int | Sequence[str | int]
"""Kafka's name or key of an API, or several."""


class Match(TypedDict, total=False):
    """Which requests a rule is about: those for which all that is given is true."""

    client_id: str
    group: str
    member: str
    """A member id or a group instance id."""
    topic: str
    nth: int
    """Only this match, counted from 1. Without `nth` and `times`, every match."""
    times: int
    """Only this number of matches, from the first on."""


class Fault:
    """One rule. As a context manager it is removed at the end of the block."""

    def __init__(self, channel: ControlChannel, description: Mapping[str, Any]) -> None:
        self._channel = channel
        self._last = description
        self._is_removed = False

    @property
    def id(self) -> str:
        identity: str = self._last["id"]
        return identity

    @property
    def count(self) -> int:
        """How often the fault has acted. After its removal, how often it had."""
        if not self._is_removed:
            self._last = self._channel.request("fault", {"id": self.id})
        count: int = self._last["count"]
        return count

    def wait(self, count: int = 1, timeout: float = 10.0) -> None:
        """Wait until the fault has acted `count` times; raises `ControlError` after `timeout`."""
        body = {"id": self.id, "count": count, "timeout": timeout}
        self._last = self._channel.request("wait-for-fault", body)

    def remove(self) -> None:
        """Connections that are silent stay so, and delayed requests stay delayed."""
        if not self._is_removed:
            self._last = self._channel.request("remove-fault", {"id": self.id})
            self._is_removed = True

    def discard(self) -> None:
        """Remove it, unless the node was restarted or stopped: then it has no rules any more."""
        with contextlib.suppress(ControlError, OSError, RuntimeError):
            self.remove()
        self._is_removed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.discard()

    def __repr__(self) -> str:
        return f"Fault({', '.join(f'{name}={given!r}' for name, given in self._last.items())})"


class Faults:
    """The faults of one node."""

    def __init__(self, channel: ControlChannel) -> None:
        self._channel = channel
        self._added: list[Fault] = []

    # Requests

    def error(self, api: Api, error: str | int, **match: Unpack[Match]) -> Fault:
        """Answer with an error, by name or number, instead of handling the request."""
        return self._add("error", {"api": _apis(api), "error": str(error), **match})

    def delay(self, api: Api, seconds: float, **match: Unpack[Match]) -> Fault:
        """Handle the request that much later, in real time, also after a disconnect.

        Requests behind it on its connection wait; other connections do not.
        """
        return self._add("delay", {"api": _apis(api), "seconds": seconds, **match})

    def drop(self, api: Api, *, after: bool = False, **match: Unpack[Match]) -> Fault:
        """Close the connection before the request takes effect, or `after` it did.

        With `after`, the response is lost.
        """
        return self._add("drop", {"api": _apis(api), "after": after, **match})

    def silence(self, api: Api, *, after: bool = False, **match: Unpack[Match]) -> Fault:
        """Never answer, before or `after` the request takes effect.

        The connection stays open, and nothing behind the request is answered either.
        """
        return self._add("silence", {"api": _apis(api), "after": after, **match})

    def truncate(self, api: Api, *, size: int, **match: Unpack[Match]) -> Fault:
        """Send only the first `size` bytes of the response, then close the connection.

        A response begins with its length, which has 4 bytes.
        """
        return self._add("truncate", {"api": _apis(api), "size": size, **match})

    # Groups. `member` is a member id, a group instance id, or a client id that one member has.

    def expire_session(self, group: str, member: str) -> None:
        """Remove a member as if it had sent no heartbeat within its session timeout."""
        self._channel.request("expire-session", {"group": group, "member": member})

    def fence(self, group: str, member: str) -> None:
        """Fence a static member as another process with its group instance id does.

        Its next requests get FENCED_INSTANCE_ID. The other process joins once and does nothing
        else: its session times out later, unless the instance joins again before. Kafka fences no
        dynamic members. One is removed instead, and its next requests get UNKNOWN_MEMBER_ID.
        """
        self._channel.request("fence-member", {"group": group, "member": member})

    def remove_member(self, group: str, member: str) -> None:
        """Remove a member as an administrator does."""
        self._channel.request("remove-member", {"group": group, "member": member})

    def rebalance(self, group: str) -> int:
        """Begin a rebalance, and return the generation before it.

        If one has begun already and waits for members to join, there is no second one.
        """
        generation: int = self._channel.request("rebalance", {"group": group})["generation"]
        return generation

    def lose_sync_answer(self, group: str, *, times: int = 1) -> Fault:
        """Lose the response to the leader's SyncGroup, whose assignment has taken effect."""
        return self._add("lose-sync-answer", {"group": group, "times": times})

    def coordinator_moved(self, group: str | None = None) -> Fault:
        """Answer NOT_COORDINATOR to requests about the group, or all groups.

        FindCoordinator is answered as before. Requests that wait for other members stay parked.
        """
        return self._add("coordinator-moved", {"group": group})

    def coordinator_loading(self, group: str | None = None) -> Fault:
        """Answer COORDINATOR_LOAD_IN_PROGRESS to requests about the group, or all groups.

        As in Kafka, there are two exceptions: heartbeats are accepted, and SyncGroup gets
        REBALANCE_IN_PROGRESS. FindCoordinator is answered as before.
        """
        return self._add("coordinator-loading", {"group": group})

    # The disk

    def disk_full(self) -> Fault:
        """All writes fail as on a full disk. The count is that of failed writes."""
        return self._add("disk-full", {})

    def slow_sync(self, seconds: float) -> Fault:
        """Every sync takes that much longer. Needs a node with kohort.durability=fsync."""
        return self._add("slow-sync", {"seconds": seconds})

    # All faults

    def list(self) -> "list[dict[str, Any]]":
        """The parameters of each fault, the oldest first, and how often it matched and acted."""
        return [dict(each) for each in self._channel.request("faults", {})["faults"]]

    def clear(self) -> None:
        """Remove all faults."""
        self._channel.request("clear-faults", {})

    def discard_added(self) -> None:
        """Remove the faults that were added with this object."""
        for fault in self._added:
            fault.discard()
        self._added.clear()

    def _add(self, action: str, body: Mapping[str, Any]) -> Fault:
        known = {name: each for name, each in body.items() if each is not None}
        added = self._channel.request("add-fault", {"action": action, **known})
        fault = Fault(self._channel, added)
        self._added.append(fault)
        return fault


def _apis(api: Api) -> "list[str]":
    several = [api] if isinstance(api, str | int) else api
    return [str(each) for each in several]
