"""The rebalances of a group, from the events of a Kohort node.

Other Kafka clusters have no such events. There, `find_current_generation` returns the current
generation of a group and when it was formed.
"""

from collections.abc import Iterable

from kohort.admin import offsets, topics
from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import NoHistory
from kohort.admin.group_monitor.events_fold import ended_rebalance, started_rebalance
from kohort.admin.group_monitor.views import ObservedRebalance
from kohort.admin.reverse_reader import read_backwards
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.events.internal_topics import (
    CONSUMER_OFFSETS,
    EVENTS_PARTITION,
    KOHORT_EVENTS,
    partition_of,
)
from kohort.events.parser import BadEvent, EventReader
from kohort.events.schema import Event, RebalanceEndedEvent, RebalanceStartedEvent
from kohort.types import (
    Generation,
    GroupId,
    Millis,
    Offset,
    TopicPartition,
    value,
)
from kohort.wire.consumer_offsets import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    decode_key,
    decode_value,
)
from kohort.wire.errors import WireError


@value
class RebalanceHistory:
    rebalances: tuple[ObservedRebalance, ...]
    """The newest last; it may be in progress."""
    unreadable: int
    """Number of events of the group that could not be decoded."""


@value
class CurrentGeneration:
    generation: Generation
    """The epoch, in a KIP-848 group."""
    formed_ms: Millis
    protocol: str | None
    leader: str | None
    members: int | None
    """None if the record does not contain it."""


def list_rebalances(
    cluster: Cluster, group_id: GroupId, since_ms: Millis, *, count: int | None = None
) -> tuple[ObservedRebalance, ...]:
    """The last `count` rebalances since a timestamp. Raises NoHistory."""
    return read_history(cluster, group_id, since_ms, count=count).rebalances


def read_history(
    cluster: Cluster, group_id: GroupId, since_ms: Millis, *, count: int | None = None
) -> RebalanceHistory:
    """Like `list_rebalances`, with the number of undecodable events."""
    if KOHORT_EVENTS not in topics.describe_topics(cluster, [KOHORT_EVENTS]):
        raise NoHistory(
            "this cluster has no topic __kohort_events: it is not Kohort, or it has no events yet"
        )
    end = offsets.list_offsets(cluster, [EVENTS_PARTITION], "latest")[EVENTS_PARTITION]
    first = offsets.list_offsets(cluster, [EVENTS_PARTITION], since_ms).get(EVENTS_PARTITION, end)
    key, events = group_id.encode(), list[ConsumerRecord]()
    history = RebalanceHistory(rebalances=(), unreadable=0)
    for window in read_backwards(cluster, EVENTS_PARTITION, first, end):
        events = [*(record for record in window if record.key == key), *events]
        history = find_rebalances(record.value for record in events)
        if count is not None and len(history.rebalances) >= count:
            break
    kept = history.rebalances if count is None else history.rebalances[-count:]
    return RebalanceHistory(rebalances=kept, unreadable=history.unreadable)


def find_rebalances(values: Iterable[bytes | None]) -> RebalanceHistory:
    """The rebalances in the events of one group, in order. Pure."""
    reader = EventReader()
    ended: list[ObservedRebalance] = []
    in_progress: ObservedRebalance | None = None
    unreadable = 0
    for each in values:
        try:
            event = reader.read(each)
        except BadEvent:
            unreadable += 1
            continue
        match event:
            case Event(details=RebalanceStartedEvent() as details):
                in_progress = started_rebalance(event.at, details)
            case Event(details=RebalanceEndedEvent() as details):
                ended.append(ended_rebalance(event.at, details))
                in_progress = None
            case _:
                pass
    found = ended if in_progress is None else [*ended, in_progress]
    return RebalanceHistory(rebalances=tuple(found), unreadable=unreadable)


# From `__consumer_offsets`, on any Kafka


def find_current_generation(cluster: Cluster, group_id: GroupId) -> CurrentGeneration | None:
    """From `__consumer_offsets`; None if the group has no record there."""
    described = topics.describe_topics(cluster, [CONSUMER_OFFSETS]).get(CONSUMER_OFFSETS)
    if described is None:
        return None
    number = partition_of(group_id, len(described.partitions))
    partition = TopicPartition(CONSUMER_OFFSETS, number)
    first = offsets.list_offsets(cluster, [partition], "earliest").get(partition, Offset(0))
    end = offsets.list_offsets(cluster, [partition], "latest").get(partition, Offset(0))
    for window in read_backwards(cluster, partition, first, end):
        for record in reversed(window):
            key = _find_key(record)
            if isinstance(key, GroupMetadataKey) and key.group == group_id:
                return _classic(record, decode_value(key, record.value))
            if isinstance(key, ConsumerGroupMetadataKey) and key.group_id == group_id:
                return _consumer_group(record, decode_value(key, record.value))
    return None


def _find_key(record: ConsumerRecord) -> object:
    """None if the record type is unknown."""
    if record.key is None:
        return None
    try:
        return decode_key(record.key)
    except WireError:
        return None


def _classic(record: ConsumerRecord, value: GroupMetadataValue | None) -> CurrentGeneration | None:
    if value is None:
        return None
    since = value.current_state_timestamp
    return CurrentGeneration(
        generation=value.generation,
        formed_ms=since if since >= 0 else Millis(record.timestamp),
        protocol=value.protocol,
        leader=value.leader,
        members=len(value.members),
    )


def _consumer_group(
    record: ConsumerRecord, value: ConsumerGroupMetadataValue | None
) -> CurrentGeneration | None:
    if value is None:
        return None
    return CurrentGeneration(
        generation=Generation(value.epoch),
        formed_ms=Millis(record.timestamp),
        protocol=None,
        leader=None,
        members=None,
    )
