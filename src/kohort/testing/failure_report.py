"""What is shown about a failed test: the rebalances of its groups and the log of the node."""

import logging
from collections import deque
from collections.abc import Iterator
from typing import Final

from kohort.admin.errors import AdminError
from kohort.admin.group_monitor.views import ObservedRebalance
from kohort.client.errors import ConsumerError
from kohort.events.schema import EventParticipant
from kohort.testing.cluster_handle import ClusterHandle
from kohort.testing.real_cluster import NotOnRealKafka
from kohort.text.numbers import ranges_by_topic
from kohort.text.rebalances import cause, ended_rebalance, member_name
from kohort.text.times import timestamp
from kohort.types import Millis, Offset, TopicPartition

_NODE_LOGGER: Final = "kohort"

_LINES_MAX: Final = 1_000
"""Of the node's log in one test; limits the memory of a test that runs for hours."""

_FORMAT: Final = logging.Formatter("%(asctime)s.%(msecs)03d %(levelname)s %(message)s", "%H:%M:%S")


class NodeLog(logging.Handler):
    """Keeps the log messages of the nodes in this process."""

    def __init__(self) -> None:
        super().__init__()
        self._records: deque[logging.LogRecord] = deque(maxlen=_LINES_MAX)

    def start(self) -> None:
        logging.getLogger(_NODE_LOGGER).addHandler(self)

    def stop(self) -> None:
        logging.getLogger(_NODE_LOGGER).removeHandler(self)

    def clear(self) -> None:
        self._records.clear()

    def emit(self, record: logging.LogRecord) -> None:
        # The loggers of consumers are below that of the node.
        if record.name == _NODE_LOGGER:
            self._records.append(record)

    def __str__(self) -> str:
        return "\n".join(map(_FORMAT.format, self._records.copy()))


def find_event_position(cluster: ClusterHandle) -> Offset | None:
    """Where events from now on are; None if the node does not run, which is no reason to fail."""
    try:
        return cluster.event_position()
    except (AdminError, RuntimeError):
        return None


def describe_rebalances(cluster: ClusterHandle, start: Offset | None) -> str:
    """The rebalances since an event position, as lines; empty if there were none."""
    try:
        found = cluster.all_rebalances(start or Offset(0))
    except NotOnRealKafka:
        return ""
    except (AdminError, ConsumerError, RuntimeError) as error:
        return f"cannot be read: {error}"
    lines: list[str] = []
    for group_id, rebalances in found.items():
        lines.append(f"group {group_id}")
        for each in rebalances:
            lines += _describe(each)
    return "\n".join(lines)


def _describe(rebalance: ObservedRebalance) -> Iterator[str]:
    yield f"  {timestamp(rebalance.started_ms or 0)} {_sentence(rebalance)}"
    for removal in rebalance.removals:
        yield f"    {member_name(removal.party)}: {removal.departure}"
    for participant in rebalance.participants:
        yield f"    {member_name(participant.party)}: {_change(participant)}"


def _sentence(rebalance: ObservedRebalance) -> str:
    initiator = None if rebalance.initiator is None else member_name(rebalance.initiator)
    trigger = rebalance.trigger or ""
    if rebalance.ended_ms is None or rebalance.started_ms is None:
        waited_for = ", ".join(rebalance.waited_for) or "no member"
        return f"{cause(trigger, initiator)}; in progress, waits for {waited_for}"
    return ended_rebalance(
        trigger=trigger,
        initiator=initiator,
        reason=rebalance.client_reason,
        ending=rebalance.ending or "",
        generation=rebalance.generation,
        members=len(rebalance.participants),
        took_ms=Millis(rebalance.ended_ms - rebalance.started_ms),
    )


def _change(participant: EventParticipant) -> str:
    return f"{_show(participant.had)} -> {_show(participant.got)}"


def _show(partitions: tuple[TopicPartition, ...] | None) -> str:
    shown = ranges_by_topic(partitions or ())
    return "; ".join(f"{topic} {numbers}" for topic, numbers in shown.items()) or "none"
