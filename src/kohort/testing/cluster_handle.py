"""What a test asks of a cluster: topics, records, offsets, groups and their rebalances.

It uses Kafka's protocol as an ordinary client, over a connection that is opened at the first call.
"""

import threading
import time
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self

from kohort.admin import groups as group_admin
from kohort.admin import offsets as offset_admin
from kohort.admin import topics as topic_admin
from kohort.admin.cluster_connection import Cluster, open_cluster
from kohort.admin.errors import NoSuchTopic
from kohort.admin.groups import GroupListing, GroupMemberDescription
from kohort.admin.lag import GroupLag, group_lag
from kohort.admin.topics import TopicDescription
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.events.internal_topics import EVENTS_PARTITION, KOHORT_EVENTS
from kohort.testing.control_channel import ControlChannel
from kohort.testing.group_waits import Body, GroupWaits
from kohort.testing.partitioner import Partitioner
from kohort.testing.topic_records import produce, read_topic
from kohort.testing.values import (
    Content,
    ProducerRecord,
    Producible,
    RecordHeaders,
    encode_record,
    read_producible,
)
from kohort.types import GroupId, Millis, Offset, Partition, Topic, TopicPartition

if TYPE_CHECKING:
    from kohort.admin.group_monitor.views import ObservedRebalance
    from kohort.conditions.group_snapshot import GroupSnapshot
    from kohort.testing.clock import NodeClock
    from kohort.testing.faults import Faults
    from kohort.testing.waits import GroupCommit

TIMEOUT_MS: Final = Millis(10_000)
"""Of one call, with all its retries."""

_FIRST: Final = Offset(0)

_OPTIONS: Final = {"client.id": "kohort-testing", "retry.backoff.ms": "5"}


class ClusterHandle(GroupWaits):
    """A cluster that a test uses. Thread-safe."""

    def __init__(self) -> None:
        self._connection_lock = threading.Lock()
        self._connected: Cluster | None = None
        self._partitioner = Partitioner()

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """The `bootstrap.servers` for Kafka clients."""

    # Life cycle

    @abstractmethod
    def start(self) -> Self:
        """Start the node again with its port and its data, after `kill`."""

    @abstractmethod
    def kill(self) -> None:
        """Stop the node as a crash does."""

    @abstractmethod
    def restart(self) -> None:
        """Shut the node down cleanly, and start it again with its port and its data."""

    # Waits, faults and clock

    @property
    def _channel(self) -> ControlChannel | None:
        """How the control operations of the node are reached; None if it has none."""
        return None

    def _wait_group(self, body: Body) -> "GroupSnapshot":
        return self._waits()._wait_group(body)  # noqa: SLF001  # waits like this class

    def _wait_rebalance(self, body: Body) -> "ObservedRebalance":
        return self._waits()._wait_rebalance(body)  # noqa: SLF001  # waits like this class

    def _wait_commit(self, body: Body) -> "GroupCommit":
        return self._waits()._wait_commit(body)  # noqa: SLF001  # waits like this class

    @property
    def faults(self) -> "Faults":
        """Faults of the node, which a test adds and removes."""
        from kohort.testing.faults import Faults  # noqa: PLC0415  # as below

        return Faults(self._get_channel())

    @property
    def clock(self) -> "NodeClock":
        """The clock of the node; a manual one can be moved."""
        from kohort.testing.clock import NodeClock  # noqa: PLC0415  # as below

        return NodeClock(self._get_channel())

    def _get_channel(self) -> ControlChannel:
        channel = self._channel
        assert channel is not None, "a cluster without control operations overrides its callers"
        return channel

    def _waits(self) -> GroupWaits:
        # Imported late: most tests do not use everything, and start faster without it.
        channel = self._channel
        if channel is None:
            from kohort.testing.polled_waits import PolledWaits  # noqa: PLC0415

            return PolledWaits(self._cluster())
        from kohort.testing.waits import Waits  # noqa: PLC0415

        return Waits(channel)

    # Topics

    def create_topic(
        self, name: str, *, partitions: int = 1, settings: Mapping[str, object] | None = None
    ) -> None:
        topic_admin.create_topic(
            self._cluster(),
            Topic(name),
            partitions=partitions,
            settings={name: _text(given) for name, given in (settings or {}).items()},
        )

    def delete_topic(self, name: str) -> None:
        topic_admin.delete_topic(self._cluster(), Topic(name))
        self._partitioner.forget(Topic(name))

    def topics(self) -> dict[str, TopicDescription]:
        """By name, without internal topics."""
        found = topic_admin.list_topics(self._cluster())
        return {each.topic: each for each in found if not each.is_internal}

    def end_offsets(self, topic: str) -> dict[tuple[str, int], int]:
        """The offset of the next record, by (topic, partition)."""
        cluster = self._cluster()
        partitions = topic_admin.partitions_of(cluster, [Topic(topic)])
        return dict(offset_admin.list_offsets(cluster, partitions, "latest").items())

    # Records

    def produce(
        self,
        topic: str,
        records: str | bytes | Iterable[Producible],
        *,
        partition: int | None = None,
        key: Content = None,
        headers: RecordHeaders | None = None,
        timestamp: int | None = None,
    ) -> list[Offset]:
        """Write records and return their offsets, in the order of the records.

        A record is a value, a pair (key, value) or a `ProducerRecord`; one text or bytes is one
        record. The other arguments are for records that do not have them. Without a partition, a
        record with a key goes to the same partition as with Kafka's producer, and others go to the
        partitions in turn.
        """
        given = [records] if isinstance(records, str | bytes) else records
        defaults = ProducerRecord(None, key, headers, timestamp, partition)
        whole = [_complete(read_producible(each), defaults) for each in given]
        cluster, name = self._cluster(), Topic(topic)
        partitions = topic_admin.partitions_of(cluster, [name])
        now = Millis(time.time_ns() // 1_000_000)
        placed = []
        with self._connection_lock:
            for each in whole:
                encoded = encode_record(each, now)
                chosen = (
                    self._partitioner.choose(partitions, encoded.key)
                    if each.partition is None
                    else _find_partition(partitions, name, each.partition)
                )
                placed.append((chosen, encoded))
        return produce(cluster, placed)

    def records(
        self, topic: str, *, partition: int | None = None, start: int = 0
    ) -> list[ConsumerRecord]:
        """The records that are in the topic now, by partition, then by offset.

        `start` is the first offset, in each partition. Records of open and aborted transactions
        are included.
        """
        cluster, name = self._cluster(), Topic(topic)
        partitions = topic_admin.partitions_of(cluster, [name])
        if partition is not None:
            partitions = (_find_partition(partitions, name, partition),)
        return read_topic(cluster, partitions, Offset(start))

    # Groups

    def groups(self) -> dict[str, GroupListing]:
        """By group id."""
        return {each.group_id: each for each in group_admin.list_groups(self._cluster())}

    def members(self, group: str) -> tuple[GroupMemberDescription, ...]:
        """With their assignments. Empty if the group does not exist."""
        found = group_admin.describe_groups(self._cluster(), [GroupId(group)])
        return found[GroupId(group)].members if found else ()

    def commit(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets by (topic, partition) for a group without members."""
        committed = {
            TopicPartition(Topic(topic), Partition(number)): Offset(offset)
            for (topic, number), offset in offsets.items()
        }
        offset_admin.alter_offsets(self._cluster(), GroupId(group), committed)

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """The committed offsets by (topic, partition). Empty if the group does not exist."""
        return dict(self._committed(GroupId(group)).items())

    def lag(self, group: str) -> GroupLag:
        """The lag of each partition with a committed offset or an owner, and the `total`."""
        committed = self._committed(GroupId(group))
        assigned = {each for member in self.members(group) for each in member.partitions}
        ends = offset_admin.list_offsets(self._cluster(), {*committed, *assigned}, "latest")
        return group_lag(GroupId(group), committed, ends, assigned)

    def _committed(self, group_id: GroupId) -> dict[TopicPartition, Offset]:
        found = offset_admin.list_group_offsets(self._cluster(), [group_id])[group_id]
        return {partition: each.offset for partition, each in found.items()}

    def rebalances(self, group: str) -> "tuple[ObservedRebalance, ...]":
        """The recorded rebalances of a group, the newest last; it may be in progress."""
        return self.all_rebalances().get(GroupId(group), ())

    def all_rebalances(
        self, start: Offset = _FIRST
    ) -> "dict[GroupId, tuple[ObservedRebalance, ...]]":
        """The recorded rebalances by group id, since an `event_position`."""
        # It loads the consumer, which most tests do not use.
        from kohort.admin.rebalance_history import find_rebalances  # noqa: PLC0415

        cluster = self._cluster()
        if KOHORT_EVENTS not in topic_admin.describe_topics(cluster, [KOHORT_EVENTS]):
            return {}
        events: defaultdict[GroupId, list[bytes | None]] = defaultdict(list)
        for record in read_topic(cluster, [EVENTS_PARTITION], start):
            events[GroupId((record.key or b"").decode(errors="replace"))].append(record.value)
        found = {group_id: find_rebalances(each).rebalances for group_id, each in events.items()}
        return {group_id: rebalances for group_id, rebalances in found.items() if rebalances}

    def event_position(self) -> Offset:
        """Where the next event of a group will be recorded."""
        ends = offset_admin.list_offsets(self._cluster(), [EVENTS_PARTITION], "latest")
        return ends.get(EVENTS_PARTITION, _FIRST)

    # The connection

    def disconnect(self) -> None:
        """Close the connection of the helpers. The next call opens a new one."""
        with self._connection_lock:
            if self._connected is not None:
                self._connected.close()
                self._connected = None

    def _cluster(self) -> Cluster:
        address = self.bootstrap_servers
        with self._connection_lock:
            if self._connected is None:
                self._connected = open_cluster(address, options=_OPTIONS, timeout_ms=TIMEOUT_MS)
            return self._connected


def _complete(record: ProducerRecord, defaults: ProducerRecord) -> ProducerRecord:
    return replace(
        record,
        key=defaults.key if record.key is None else record.key,
        headers=defaults.headers if record.headers is None else record.headers,
        timestamp=defaults.timestamp if record.timestamp is None else record.timestamp,
        partition=defaults.partition if record.partition is None else record.partition,
    )


def _find_partition(
    partitions: Sequence[TopicPartition], topic: Topic, number: int
) -> TopicPartition:
    found = TopicPartition(topic, Partition(number))
    if found not in partitions:
        count = len(partitions)
        raise NoSuchTopic(f"topic {topic!r} has no partition {number}: it has 0 to {count - 1}")
    return found


def _text(given: object) -> str:
    return str(given).lower() if isinstance(given, bool) else str(given)
