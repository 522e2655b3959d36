"""The topics of this node: which there are, which may be made, and how requests name them."""

from collections.abc import Callable, Mapping
from typing import Final
from uuid import uuid4

from kohort.log.catalog import Catalog
from kohort.log.catalog_file import KeptTopic
from kohort.log.errors import Refused
from kohort.log.limits import LEADER_EPOCH
from kohort.log.names import check_topic_name
from kohort.log.partition import PartitionLog
from kohort.log.settings import parse_settings
from kohort.node.config import Settings
from kohort.types import ErrorCode, Millis, Partition, Topic, Uuid, value

OFFSETS: Final = Topic("__consumer_offsets")
EVENTS: Final = Topic("__kohort_events")

PARTITIONS_MAX: Final = 10_000
"""Of one topic; protects file descriptors and memory. Kafka makes no more in one request."""


def is_internal(name: str) -> bool:
    """Whether a topic is the node's own: everybody may read it, nobody else writes to it."""
    return name in (OFFSETS, EVENTS)


def find_epoch_fault(leader_epoch: int) -> ErrorCode | None:
    """What is wrong with the epoch a client believes in. Below zero it did not tell one.

    None can be too old, since there never was an earlier leader.
    """
    return ErrorCode.UNKNOWN_LEADER_EPOCH if leader_epoch > LEADER_EPOCH else None


def missing_error(name: str) -> ErrorCode:
    """What is said of a topic that does not exist: whether it could."""
    try:
        check_topic_name(name)
    except Refused as refusal:
        return refusal.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def check_single(name: str, times: int) -> None:
    """A request says one thing about a topic, or about anything else with a name."""
    if times > 1:
        raise Refused(ErrorCode.INVALID_REQUEST, f"{name} is named {times} times")


def check_count(partition_count: int) -> None:
    if partition_count < 1:
        reason = f"{partition_count} partitions; there must be at least one"
        raise Refused(ErrorCode.INVALID_PARTITIONS, reason)
    if partition_count > PARTITIONS_MAX:
        reason = f"{partition_count} partitions; at most {PARTITIONS_MAX} are made"
        raise Refused(ErrorCode.POLICY_VIOLATION, reason)


def _unify(name: Topic) -> str:
    """Metrics write '.' as '_', so two topics may not differ in that alone."""
    return name.replace(".", "_")


@value
class Named:
    """A topic as a request named it, whether it exists or not."""

    name: Topic
    count: int
    missing: ErrorCode

    def find_fault(self, partition: Partition) -> ErrorCode | None:
        if 0 <= partition < self.count:
            return None
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if self.count else self.missing


@value
class NewTopic:
    """A topic to be made."""

    name: Topic
    partition_count: int
    overrides: Mapping[str, str]


def fresh_topic_id() -> Uuid:
    """A random one; never one that begins with a dash where tools write it, as Kafka sees to."""
    while True:
        fresh = uuid4().bytes
        if fresh[0] >> 2 != _DASH:
            return Uuid(fresh)


_DASH: Final = 62
"""The six bits that base64 writes as a dash in names."""


class Topics:
    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        fresh_id: Callable[[], Uuid] = fresh_topic_id,
    ) -> None:
        self.catalog = catalog
        self._settings = settings
        self.fresh_id = fresh_id
        self._offsets: list[PartitionLog] | None = None
        self._unified = {_unify(topic.name): topic.name for topic in catalog.topics}

    # Looking

    def all(self) -> tuple[KeptTopic, ...]:
        return self.catalog.topics

    def find(self, name: Topic) -> KeptTopic | None:
        return self.catalog.find_topic(name)

    def find_by_id(self, topic_id: Uuid) -> KeptTopic | None:
        return self.catalog.find_topic_by_id(topic_id)

    def name(self, name: Topic, topic_id: Uuid, *, by_id: bool) -> Named:
        if by_id:
            topic = self.catalog.find_topic_by_id(topic_id)
            missing = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic = self.catalog.find_topic(name)
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is None:
            return Named(name=name, count=0, missing=missing)
        return Named(name=topic.name, count=topic.partition_count, missing=missing)

    def has(self, name: Topic, partition: Partition) -> bool:
        return self.catalog.partition(name, partition) is not None

    def id_of(self, name: Topic) -> Uuid | None:
        topic = self.catalog.find_topic(name)
        return None if topic is None else topic.topic_id

    # Making and changing: Refused says why not, StorageError that the disk failed

    def check_name(self, name: Topic) -> None:
        check_topic_name(name)
        if self.find(name) is not None:
            raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} exists already")
        colliding = self._unified.get(_unify(name))
        if colliding is not None:
            # DEVIATION: Kafka overlooks it where both are made in one request.
            reason = f"topic {name} collides with {colliding}: '.' and '_' count as the same"
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)

    def check_overrides(self, overrides: Mapping[str, str]) -> None:
        parse_settings(overrides, self._settings.topic_defaults())

    def create(self, new: NewTopic, now: Millis) -> KeptTopic:
        self.check_name(new.name)
        self.check_overrides(new.overrides)
        check_count(new.partition_count)
        topic = self.catalog.create_topic(
            new.name, self.fresh_id(), new.partition_count, new.overrides, now
        )
        self._unified[_unify(new.name)] = new.name
        return topic

    def create_on_demand(self, name: Topic, now: Millis) -> KeptTopic:
        """As asking for it does: with the node's defaults, or if it is internal, with its own."""
        return self.create(self._defaults(name), now)

    def check_growth(self, name: Topic, count: int) -> KeptTopic:
        """The topic, if it may have that many partitions."""
        topic = self.find(name)
        if topic is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        if name == OFFSETS:
            # DEVIATION: Kafka lets it happen, and loses every group that then belongs elsewhere.
            reason = f"{name} keeps its partitions: groups are found by their number"
            raise Refused(ErrorCode.INVALID_PARTITIONS, reason)
        if count <= topic.partition_count:
            reason = f"topic {name} has {topic.partition_count} partitions; {count} are not more"
            raise Refused(ErrorCode.INVALID_PARTITIONS, reason)
        check_count(count)
        return topic

    def add_partitions(self, name: Topic, count: int, now: Millis) -> None:
        self.check_growth(name, count)
        self.catalog.add_partitions(name, count, now)

    def alter(self, name: Topic, overrides: Mapping[str, str]) -> None:
        self.catalog.alter_settings(name, overrides)

    def delete(self, name: Topic) -> None:
        if name == OFFSETS:
            # DEVIATION: Kafka deletes it, and with it every group and every committed offset.
            reason = f"{name} is where groups are kept"
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)
        self.catalog.delete_topic(name)
        self._unified.pop(_unify(name), None)

    # The node's own

    def offsets_partitions(self, now: Millis) -> list[PartitionLog]:
        if self._offsets is None:
            self._offsets = self._own_partitions(OFFSETS, now)
        return self._offsets

    def events_partition(self, now: Millis) -> PartitionLog:
        found = self.catalog.partition(EVENTS, Partition(0))
        return found or self._own_partitions(EVENTS, now)[0]

    def _own_partitions(self, name: Topic, now: Millis) -> list[PartitionLog]:
        topic = self.find(name) or self.create_on_demand(name, now)
        partitions = []
        for index in range(topic.partition_count):
            partition = self.catalog.partition(name, Partition(index))
            assert partition is not None, f"{name} has no partition {index}"
            partitions.append(partition)
        return partitions

    def _defaults(self, name: Topic) -> NewTopic:
        settings = self._settings
        count: int = settings["num.partitions"]
        overrides: dict[str, str] = {}
        if name == OFFSETS:
            count = settings["offsets.topic.num.partitions"]
            size = settings["offsets.topic.segment.bytes"]
            overrides = {
                "cleanup.policy": "compact",
                "segment.bytes": str(size),
                "compression.type": "producer",
            }
        elif name == EVENTS:
            count = 1
            kept_ms = settings["kohort.events.retention.ms"]
            overrides = {"cleanup.policy": "delete", "retention.ms": str(kept_ms)}
        return NewTopic(name=name, partition_count=count, overrides=overrides)
