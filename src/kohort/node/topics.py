"""The topics of this broker: lookup by name or id, checks, creation and changes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final
from uuid import uuid4

from kohort.events.internal_topics import CONSUMER_OFFSETS, KOHORT_EVENTS
from kohort.log.catalog import Catalog
from kohort.log.catalog_file import CatalogTopic
from kohort.log.errors import RequestRejected, StorageError
from kohort.log.file_names import check_topic_name
from kohort.log.limits import LEADER_EPOCH
from kohort.log.partition import PartitionLog
from kohort.node.config import BrokerConfig
from kohort.node.request import WROTE_FILES, SlicedPart
from kohort.node.storage_error_log import StorageErrorLog
from kohort.types import BrokerId, ErrorCode, Partition, Topic, Uuid, value

PARTITIONS_MAX: Final = 10_000
"""Per topic; protects file descriptors and memory. Kafka's limit for one request."""


def is_internal(name: str) -> bool:
    """Whether only the broker itself may write to this topic. Every client may read it."""
    return name in (CONSUMER_OFFSETS, KOHORT_EVENTS)


def find_leader_epoch_error(leader_epoch: int) -> ErrorCode | None:
    """Check the leader epoch that a client sent; a negative one means that it sent none.

    No epoch is too old, because there was never an earlier leader.
    """
    return ErrorCode.UNKNOWN_LEADER_EPOCH if leader_epoch > LEADER_EPOCH else None


def unknown_topic_error(name: str) -> ErrorCode:
    """The error for a topic that does not exist: an invalid name, or an unknown topic."""
    try:
        check_topic_name(name)
    except RequestRejected as refusal:
        return refusal.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def check_named_once(name: str, times: int) -> None:
    """A request must not name the same topic, or other resource, twice."""
    if times > 1:
        raise RequestRejected(
            ErrorCode.INVALID_REQUEST, f"{name} appears {times} times in the request"
        )


def check_partition_count(partition_count: int) -> None:
    if partition_count < 1:
        reason = f"{partition_count} partitions: a topic has at least one"
        raise RequestRejected(ErrorCode.INVALID_PARTITIONS, reason)
    if partition_count > PARTITIONS_MAX:
        reason = f"{partition_count} partitions: the maximum is {PARTITIONS_MAX}"
        raise RequestRejected(ErrorCode.POLICY_VIOLATION, reason)


def check_replicas(broker_ids: tuple[BrokerId, ...], node_id: BrokerId) -> None:
    """A manual assignment must name this broker and no other."""
    if broker_ids != (node_id,):
        reason = f"replicas {list(broker_ids)}: this cluster has only broker {node_id}"
        raise RequestRejected(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)


def check_replication_factor(replication_factor: int) -> None:
    """1, or -1 for the default, which is 1."""
    if replication_factor not in (1, -1):
        reason = f"replication factor {replication_factor}: this cluster has one broker, so use 1"
        raise RequestRejected(ErrorCode.INVALID_REPLICATION_FACTOR, reason)


def _unify(name: Topic) -> str:
    """Metric names replace '.' by '_', so two topics must not differ in that alone."""
    return name.replace(".", "_")


@value
class ResolvedTopic:
    """The topic that a request names by name or id; it may not exist."""

    name: Topic
    partition_count: int
    """0 if the topic does not exist."""
    missing_error: ErrorCode

    def find_error(self, partition: Partition) -> ErrorCode | None:
        if 0 <= partition < self.partition_count:
            return None
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if self.partition_count else self.missing_error


@value
class NewTopic:
    name: Topic
    partition_count: int
    overrides: Mapping[str, str]


CreationResult = CatalogTopic | RequestRejected | StorageError
"""The new topic, or why it was not created."""


def fresh_topic_id() -> Uuid:
    """A random id. As in Kafka its base64 form does not begin with a dash, for command lines."""
    while True:
        fresh = uuid4().bytes
        if fresh[0] >> 2 != _DASH:
            return Uuid(fresh)


_DASH: Final = 62
"""The six bits that URL-safe base64 writes as a dash."""


class Topics:
    def __init__(
        self,
        catalog: Catalog,
        settings: BrokerConfig,
        fresh_id: Callable[[], Uuid] = fresh_topic_id,
    ) -> None:
        self.catalog = catalog
        self._settings = settings
        self.fresh_id = fresh_id
        self.storage_errors = StorageErrorLog()
        self._offsets: list[PartitionLog] | None = None
        self._unified = {_unify(topic.name): topic.name for topic in catalog.topics}

    # Lookup

    def all(self) -> tuple[CatalogTopic, ...]:
        return self.catalog.topics

    def find(self, name: Topic) -> CatalogTopic | None:
        return self.catalog.find_topic(name)

    def find_by_id(self, topic_id: Uuid) -> CatalogTopic | None:
        return self.catalog.find_topic_by_id(topic_id)

    def resolve(self, name: Topic, topic_id: Uuid, *, by_id: bool) -> ResolvedTopic:
        if by_id:
            topic = self.catalog.find_topic_by_id(topic_id)
            missing = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic = self.catalog.find_topic(name)
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is None:
            return ResolvedTopic(name=name, partition_count=0, missing_error=missing)
        return ResolvedTopic(
            name=topic.name, partition_count=topic.partition_count, missing_error=missing
        )

    def has(self, name: Topic, partition: Partition) -> bool:
        topic = self.catalog.find_topic(name)
        return topic is not None and 0 <= partition < topic.partition_count

    def id_of(self, name: Topic) -> Uuid | None:
        topic = self.catalog.find_topic(name)
        return None if topic is None else topic.topic_id

    # Creation and changes raise RequestRejected, or StorageError if the disk fails.

    def check_name(self, name: Topic) -> None:
        check_topic_name(name)
        if self.find(name) is not None:
            raise RequestRejected(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} already exists")
        colliding = self._unified.get(_unify(name))
        if colliding == name:
            reason = f"topic {name} is being created by another request"
            raise RequestRejected(ErrorCode.TOPIC_ALREADY_EXISTS, reason)
        if colliding is not None:
            # DEVIATION: Kafka misses the collision if one request creates both topics.
            reason = (
                f"topic {name} collides with {colliding}: '.' and '_' are the same in metric names"
            )
            raise RequestRejected(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)

    def check_overrides(self, overrides: Mapping[str, str]) -> None:
        self.catalog.check_settings(overrides)

    def create(self, new: NewTopic) -> CatalogTopic:
        steps = self.create_all((new,))
        results: list[CreationResult] = []
        while not results:
            try:
                next(steps)
            except StopIteration as end:
                results = end.value
        (created,) = results
        if isinstance(created, CatalogTopic):
            return created
        raise created

    def create_all(self, new: Sequence[NewTopic]) -> SlicedPart[list[CreationResult]]:
        """Create topics by one change of the catalog. Each is refused on its own, but if the disk
        fails, none is created.

        There are several slices only if deleted topics of the same names have many directories
        left. If the work is abandoned, no topic is created.
        """
        results: list[CreationResult] = []
        accepted: list[CatalogTopic] = []
        try:
            for each in new:
                try:
                    topic = self._new_topic(each)
                except RequestRejected as error:
                    results.append(error)
                else:
                    # From now on the other topics of the request may not have a colliding name.
                    self._unified[_unify(topic.name)] = topic.name
                    accepted.append(topic)
                    results.append(topic)
            if accepted:
                for _ in self.catalog.create_topics_stepwise(accepted):
                    yield WROTE_FILES
        except BaseException as error:
            for topic in accepted:
                del self._unified[_unify(topic.name)]
            if not isinstance(error, StorageError):
                raise
            return [error if isinstance(each, CatalogTopic) else each for each in results]
        return results

    def _new_topic(self, new: NewTopic) -> CatalogTopic:
        self.check_name(new.name)
        check_partition_count(new.partition_count)
        topic = CatalogTopic(
            name=new.name,
            topic_id=self.fresh_id(),
            partition_count=new.partition_count,
            settings=dict(new.overrides),
        )
        self.catalog.check_new_topic(topic)
        return topic

    def create_on_demand(self, names: Sequence[Topic]) -> SlicedPart[list[CreationResult]]:
        """Create topics because a metadata request named them, with the default settings."""
        return self.create_all([self.defaults(name) for name in names])

    def check_growth(self, name: Topic, count: int) -> CatalogTopic:
        """Return the topic if it may grow to that many partitions."""
        topic = self.find(name)
        if topic is None:
            raise RequestRejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        if name == CONSUMER_OFFSETS:
            # DEVIATION: Kafka allows it, and loses the groups whose partition changes.
            reason = (
                f"{name} cannot grow: the partition of a group depends on the number of partitions"
            )
            raise RequestRejected(ErrorCode.INVALID_PARTITIONS, reason)
        if count <= topic.partition_count:
            reason = f"topic {name} has {topic.partition_count} partitions; {count} is not more"
            raise RequestRejected(ErrorCode.INVALID_PARTITIONS, reason)
        check_partition_count(count)
        return topic

    def add_partitions(self, name: Topic, count: int) -> None:
        self.check_growth(name, count)
        self.catalog.add_partitions(name, count)

    def alter(self, name: Topic, overrides: Mapping[str, str]) -> None:
        self.catalog.alter_settings(name, overrides)

    def check_deletion(self, name: Topic) -> None:
        if name == CONSUMER_OFFSETS:
            # DEVIATION: Kafka deletes it, with every group and every committed offset.
            reason = f"{name} cannot be deleted: it stores the consumer groups"
            raise RequestRejected(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)

    def delete(self, names: Sequence[Topic]) -> None:
        """Delete topics by one change of the catalog: all of them or none."""
        for name in names:
            self.check_deletion(name)
        self.catalog.delete_topics(names)
        for name in names:
            self._unified.pop(_unify(name), None)

    # Internal topics

    def offsets_partitions(self) -> list[PartitionLog]:
        if self._offsets is None:
            self._offsets = self._internal_partitions(CONSUMER_OFFSETS)
        return self._offsets

    def events_partition(self) -> PartitionLog:
        found = self.catalog.partition(KOHORT_EVENTS, Partition(0))
        return found or self._internal_partitions(KOHORT_EVENTS)[0]

    def _internal_partitions(self, name: Topic) -> list[PartitionLog]:
        topic = self.find(name) or self.create(self.defaults(name))
        partitions = []
        for index in range(topic.partition_count):
            partition = self.catalog.partition(name, Partition(index))
            assert partition is not None, f"{name} has no partition {index}"
            partitions.append(partition)
        return partitions

    def defaults(self, name: Topic) -> NewTopic:
        """A topic with the default settings, for its creation on demand."""
        settings = self._settings
        count: int = settings["num.partitions"]
        overrides: dict[str, str] = {}
        if name == CONSUMER_OFFSETS:
            count = settings["offsets.topic.num.partitions"]
            size = settings["offsets.topic.segment.bytes"]
            overrides = {
                "cleanup.policy": "compact",
                "segment.bytes": str(size),
                "compression.type": "producer",
            }
        elif name == KOHORT_EVENTS:
            count = 1
            retention_ms = settings["kohort.events.retention.ms"]
            overrides = {"cleanup.policy": "delete", "retention.ms": str(retention_ms)}
        return NewTopic(name=name, partition_count=count, overrides=overrides)
