"""What befell a group: its rebalances, from the events that a Kohort node keeps.

Any other Kafka keeps no such events: there, `present_generation` tells what its own records still
say, which is the generation a group is in, and when it was formed.
"""

from collections.abc import Iterable
from typing import Final

from kohort.admin import offsets, topics
from kohort.admin.cluster import Cluster
from kohort.admin.errors import NoHistory
from kohort.admin.picture.events import BadEvent, PartJoiner, read_ended, read_event, read_started
from kohort.admin.picture.values import Rebalance
from kohort.admin.reading import read_backwards
from kohort.client.fetching.records import ConsumerRecord
from kohort.client.topic_partition import TopicPartition
from kohort.types import Generation, GroupId, Millis, Offset, Partition, Topic, value
from kohort.wire.consumer_offsets import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    decode_key,
    decode_value,
)
from kohort.wire.errors import WireError

EVENTS: Final = Topic("__kohort_events")
OFFSETS: Final = Topic("__consumer_offsets")

_EVENTS_PARTITION: Final = TopicPartition(EVENTS, Partition(0))


@value
class History:
    rebalances: tuple[Rebalance, ...]
    """The newest last; one that is under way has not ended."""
    unreadable: int
    """Events about the group that make no sense."""


@value
class PresentGeneration:
    generation: Generation
    """Its epoch, where the group is of the newer type."""
    formed_ms: Millis
    protocol: str | None
    leader: str | None
    members: int | None
    """None where the record does not say."""


def rebalances(
    cluster: Cluster, group_id: GroupId, since_ms: Millis, *, count: int | None = None
) -> tuple[Rebalance, ...]:
    """The last ones since a moment, as many as are wished for. NoHistory where none is kept."""
    return read_history(cluster, group_id, since_ms, count=count).rebalances


def read_history(
    cluster: Cluster, group_id: GroupId, since_ms: Millis, *, count: int | None = None
) -> History:
    """The same, and whether something could not be read."""
    if EVENTS not in topics.describe_topics(cluster, [EVENTS]):
        raise NoHistory(
            "this cluster keeps no events of its groups: it is not Kohort, or nothing has happened"
        )
    end = offsets.ends(cluster, [_EVENTS_PARTITION], "latest")[_EVENTS_PARTITION]
    first = offsets.ends(cluster, [_EVENTS_PARTITION], since_ms).get(_EVENTS_PARTITION, end)
    key, events = group_id.encode(), list[ConsumerRecord]()
    history = History(rebalances=(), unreadable=0)
    for window in read_backwards(cluster, _EVENTS_PARTITION, first, end):
        events = [*(record for record in window if record.key == key), *events]
        history = tell(record.value for record in events)
        if count is not None and len(history.rebalances) >= count:
            break
    kept = history.rebalances if count is None else history.rebalances[-count:]
    return History(rebalances=kept, unreadable=history.unreadable)


def tell(values: Iterable[bytes | None]) -> History:
    """The story in a group's events, in their order. Pure."""
    joiner = PartJoiner()
    ended: list[Rebalance] = []
    under_way: Rebalance | None = None
    unreadable = 0
    for each in values:
        try:
            event = joiner.take(read_event(each))
            if event is None:
                continue
            if event["event"] == "rebalance-started":
                under_way = read_started(event)
            elif event["event"] == "rebalance-ended":
                ended.append(read_ended(event))
                under_way = None
        except BadEvent:
            unreadable += 1
    found = ended if under_way is None else [*ended, under_way]
    return History(rebalances=tuple(found), unreadable=unreadable)


# What any Kafka knows


def present_generation(cluster: Cluster, group_id: GroupId) -> PresentGeneration | None:
    """From the records of the group's coordinator; None where it has none, or none any more."""
    described = topics.describe_topics(cluster, [OFFSETS]).get(OFFSETS)
    if described is None:
        return None
    number = home_of(group_id, len(described.partitions))
    place = TopicPartition(OFFSETS, number)
    first = offsets.ends(cluster, [place], "earliest").get(place, Offset(0))
    end = offsets.ends(cluster, [place], "latest").get(place, Offset(0))
    for window in read_backwards(cluster, place, first, end):
        for record in reversed(window):
            key = _find_key(record)
            if isinstance(key, GroupMetadataKey) and key.group == group_id:
                return _classic(record, decode_value(key, record.value))
            if isinstance(key, ConsumerGroupMetadataKey) and key.group_id == group_id:
                return _newer(record, decode_value(key, record.value))
    return None


def home_of(group_id: GroupId, partitions: int) -> Partition:
    """The partition of `__consumer_offsets` that keeps a group: Java's hash of its name."""
    number = 0
    units = group_id.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        number = (31 * number + int.from_bytes(units[position : position + 2])) & 0xFFFFFFFF
    signed = number - (1 << 32) if number >= 1 << 31 else number
    # Kafka's abs has no answer for the smallest of all numbers, and takes zero for it.
    return Partition((0 if signed == -(1 << 31) else abs(signed)) % partitions)


def _find_key(record: ConsumerRecord) -> object:
    """None for the kinds of records that are not of consumers, which come and go with versions."""
    if record.key is None:
        return None
    try:
        return decode_key(record.key)
    except WireError:
        return None


def _classic(record: ConsumerRecord, told: GroupMetadataValue | None) -> PresentGeneration | None:
    if told is None:
        return None
    since = told.current_state_timestamp
    return PresentGeneration(
        generation=told.generation,
        formed_ms=since if since >= 0 else Millis(record.timestamp),
        protocol=told.protocol,
        leader=told.leader,
        members=len(told.members),
    )


def _newer(
    record: ConsumerRecord, told: ConsumerGroupMetadataValue | None
) -> PresentGeneration | None:
    if told is None:
        return None
    return PresentGeneration(
        generation=Generation(told.epoch),
        formed_ms=Millis(record.timestamp),
        protocol=None,
        leader=None,
        members=None,
    )
