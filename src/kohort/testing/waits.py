"""Waits for conditions of groups. The node answers when they hold; nothing polls."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kohort.admin.group_monitor.events_fold import ended_rebalance
from kohort.admin.group_monitor.views import ObservedRebalance
from kohort.conditions.group_snapshot import GroupSnapshot, snapshot_from_json
from kohort.conditions.wait_requests import read_commit_wait, read_rebalance_wait, read_wait
from kohort.events.parser import parse_event
from kohort.events.schema import RebalanceEndedEvent
from kohort.node.control.errors import ControlError
from kohort.testing.control_channel import ControlChannel
from kohort.testing.group_waits import Body, GroupWaits
from kohort.types import GroupId, Millis, Offset, Partition, Topic, TopicPartition, value

_LOOP_BLOCKED: Final = (
    "The event loop of this thread did not run during the wait. If the consumer runs in it, use"
    " `await asyncio.to_thread(cluster.wait_for, ...)`."
)


class WaitTimeout(TimeoutError):
    """The condition did not hold in time. The text says what is missing, and the last events."""

    def __init__(self, message: str, missing: Sequence[str], group: GroupSnapshot) -> None:
        super().__init__(f"{message}\n{_LOOP_BLOCKED}" if _is_in_event_loop() else message)
        self.missing = tuple(missing)
        """A clause for each condition that did not hold."""
        self.group = group
        """The group when the time was over."""


@value
class AcceptedCommit:
    partition: TopicPartition
    offset: Offset
    metadata: str
    committed_ms: Millis | None
    """When the commit was accepted; None if that is not known."""


@value
class GroupCommit:
    """The committed offsets that a caller waited for."""

    group_id: GroupId
    commits: tuple[AcceptedCommit, ...]
    """Sorted by partition."""

    @property
    def offsets(self) -> dict[TopicPartition, Offset]:
        return {each.partition: each.offset for each in self.commits}


class Waits(GroupWaits):
    """The waits of one node. A node whose clock is manual waits in real time too."""

    def __init__(self, channel: ControlChannel) -> None:
        self._channel = channel

    def _wait_group(self, body: Body) -> GroupSnapshot:
        read_wait(body)
        return snapshot_from_json(self._request("wait", body))

    def _wait_rebalance(self, body: Body) -> ObservedRebalance:
        read_rebalance_wait(body)
        found = dict(self._request("wait-rebalance", body))
        event = parse_event([json.dumps(found).encode()])
        assert isinstance(event.details, RebalanceEndedEvent), f"{event.name} is no rebalance"
        return ended_rebalance(event.at, event.details)

    def _wait_commit(self, body: Body) -> GroupCommit:
        read_commit_wait(body)
        found = self._request("wait-commit", body)
        return GroupCommit(
            group_id=GroupId(found["group"]),
            commits=tuple(_read_commit(each) for each in found["commits"]),
        )

    def _request(self, operation: str, body: Body) -> Mapping[str, Any]:
        given = {name: each for name, each in body.items() if each is not None}
        try:
            return self._channel.request(operation, given)
        except ControlError as error:
            if "missing" not in error.details:
                raise
            group = snapshot_from_json(error.details["group"])
            raise WaitTimeout(str(error), error.details["missing"], group) from None


def _read_commit(found: Mapping[str, Any]) -> AcceptedCommit:
    return AcceptedCommit(
        partition=TopicPartition(Topic(found["topic"]), Partition(found["partition"])),
        offset=found["offset"],
        metadata=found["metadata"],
        committed_ms=found["committed_ms"],
    )


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
