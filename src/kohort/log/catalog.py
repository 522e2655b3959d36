"""All topics of a data directory: which there are, their settings, and their partitions' logs.

What the catalog's file says is true: a directory it does not name is a leftover, and one it names
is made if it is missing. Ids and the time are given by the caller.
"""

import base64
import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from kohort.log import names
from kohort.log.catalog_file import (
    Content,
    KeptTopic,
    claim_directory,
    find_content,
    write_content,
)
from kohort.log.checkpoint import Checkpoints, encode_clean_shutdown
from kohort.log.cleaning import Cleaned
from kohort.log.directories import Directories
from kohort.log.disk import Disk, Lock
from kohort.log.errors import Refused, StorageError
from kohort.log.limits import Limits
from kohort.log.osdisk import OsDisk
from kohort.log.partition import PartitionLog
from kohort.log.recovery import Known, load_partition
from kohort.log.settings import parse_settings
from kohort.log.swap import Recovered
from kohort.log.unsynced import Unsynced
from kohort.types import ErrorCode, Millis, Partition, ProducerId, Topic, Uuid, value

_NO_DEFAULTS: Final[Mapping[str, str]] = {}
_LIMITS: Final = Limits()

_LOOK_AROUND_MS: Final = 1_000
"""How long partitions wait to be looked at while one of them is being compacted."""


@value
class CleanedPartition:
    topic: Topic
    partition: Partition
    cleaned: Cleaned


@value
class CleanedCatalog:
    """What cleaning did, where it did anything."""

    partitions: tuple[CleanedPartition, ...]
    is_done: bool
    """False if the budget did not suffice: clean again soon."""
    failure: str | None
    """Why the checkpoints could not be written; they will be another time."""


class Catalog:
    def __init__(
        self,
        disk: Disk,
        lock: Lock,
        content: Content,
        defaults: Mapping[str, str],
        limits: Limits,
    ) -> None:
        """For open() alone."""
        self._disk = disk
        self._lock = lock
        self._content = content
        self._defaults = defaults
        self._limits = limits
        listed = disk.list("")
        self._is_clean = names.CLEAN_SHUTDOWN in listed
        self._checkpoints = Checkpoints(disk, listed)
        self._directories = Directories(disk)
        self._logs: dict[Topic, list[PartitionLog]] = {}
        self._by_id = {topic.topic_id: topic.name for topic in content.topics.values()}
        self._written: dict[PartitionLog, None] = {}
        self._compacting: PartitionLog | None = None
        self._look_around_at = Millis(0)

    @classmethod
    def open(
        cls,
        where: Disk | Path | str,
        now: Millis,
        defaults: Mapping[str, str] = _NO_DEFAULTS,
        *,
        cluster_id: str | None = None,
        limits: Limits = _LIMITS,
    ) -> "tuple[Catalog, tuple[Recovered, ...]]":
        """A data directory, made if it is missing, and what had to be mended in it.

        The defaults are topic settings that hold where a topic has none of its own. A new
        directory keeps the cluster's id; without one, its name and the time make one.
        """
        parse_settings(_NO_DEFAULTS, defaults)
        disk = OsDisk(Path(where)) if isinstance(where, str | Path) else where
        lock = claim_directory(disk)
        try:
            content = find_content(disk)
            if content is None:
                content = _new_content(cluster_id or _make_id(disk.name, now))
                write_content(disk, content)
            catalog = cls(disk, lock, content, defaults, limits)
            return catalog, tuple(catalog._load(now))
        except BaseException:
            lock.release()
            raise

    def _load(self, now: Millis) -> Iterator[Recovered]:
        if self._is_clean:
            # From here on a crash is one.
            self._disk.remove(names.CLEAN_SHUTDOWN)
            self._disk.sync_directory("")
        yield from self._directories.tidy(self._content)
        self._checkpoints.keep_only(set(self._content.topics))
        for topic in self._content.topics.values():
            self._logs[topic.name] = []
            for number in range(topic.partition_count):
                yield from self._open_partition(topic, Partition(number), now)
        self._is_clean = False

    def _open_partition(
        self, topic: KeptTopic, partition: Partition, now: Millis
    ) -> tuple[Recovered, ...]:
        directory = self._directories.prepare(topic, partition)
        settings = parse_settings(topic.settings, self._defaults)
        known = Known(
            start_offset=self._checkpoints.start_offsets.find(topic.name, partition),
            recovery_point=self._checkpoints.recovery_points.find(topic.name, partition),
            is_clean=self._is_clean,
            index_interval_bytes=settings.index_interval_bytes,
        )
        loaded = load_partition(self._disk, directory, known, self._limits, now)
        log = PartitionLog(
            disk=self._disk,
            directory=directory,
            topic=topic.name,
            partition=partition,
            settings=settings,
            limits=self._limits,
            checkpoints=self._checkpoints,
            loaded=loaded,
            written=self._written,
        )
        self._logs[topic.name].append(log)
        return loaded.recovered

    # Finding

    @property
    def directory(self) -> str:
        """Where all this lies."""
        return self._disk.name

    @property
    def cluster_id(self) -> str:
        return self._content.cluster_id

    @property
    def topics(self) -> tuple[KeptTopic, ...]:
        return tuple(self._content.topics.values())

    def find_topic(self, name: Topic) -> KeptTopic | None:
        return self._content.topics.get(name)

    def find_topic_by_id(self, topic_id: Uuid) -> KeptTopic | None:
        name = self._by_id.get(topic_id)
        return None if name is None else self._content.topics[name]

    def partition(self, topic: Topic, partition: int) -> PartitionLog | None:
        logs = self._logs.get(topic)
        if logs is None or not 0 <= partition < len(logs):
            return None
        return logs[partition]

    # Changing

    def create_topic(
        self,
        name: Topic,
        topic_id: Uuid,
        partition_count: int,
        settings: Mapping[str, str],
        now: Millis,
    ) -> KeptTopic:
        """A new topic with empty partitions. Raises Refused if it cannot be."""
        names.check_topic_name(name)
        if name in self._content.topics:
            raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} exists")
        assert len(topic_id) == 16, "a topic's id has sixteen bytes"
        assert topic_id not in self._by_id, "a topic's id is its own"
        _check_count(name, partition_count, more_than=0)
        parse_settings(settings, self._defaults)
        topic = KeptTopic(
            name=name,
            topic_id=topic_id,
            partition_count=partition_count,
            settings=dict(settings),
        )
        self._logs[name] = []
        self._grow(topic, now)
        self._by_id[topic_id] = name
        return topic

    def add_partitions(self, name: Topic, partition_count: int, now: Millis) -> KeptTopic:
        """So many partitions in all."""
        topic = self._get_topic(name)
        _check_count(name, partition_count, more_than=topic.partition_count)
        topic = replace(topic, partition_count=partition_count)
        self._grow(topic, now)
        return topic

    def alter_settings(self, name: Topic, settings: Mapping[str, str]) -> KeptTopic:
        """These in place of all the topic's own settings."""
        parsed = parse_settings(settings, self._defaults)
        topic = replace(self._get_topic(name), settings=dict(settings))
        self._put(topic)
        for log in self._logs[name]:
            log.apply_settings(parsed)
        return topic

    def delete_topic(self, name: Topic) -> None:
        """The topic is gone once its file says so; what is left of it goes now, or later."""
        topic = self._get_topic(name)
        topics = {key: kept for key, kept in self._content.topics.items() if key != name}
        deleting = (*self._content.deleting, topic)
        self._keep(replace(self._content, topics=topics, deleting=deleting))
        del self._by_id[topic.topic_id]
        for log in self._logs.pop(name):
            log.abandon()
            if self._compacting is log:
                self._compacting = None
            self._written.pop(log, None)
            self._checkpoints.forget(name, log.partition)
        # The topic is gone in any case. What is left, the next start removes.
        with contextlib.suppress(StorageError):
            self._checkpoints.flush()
            self._directories.remove(topic)
            deleting = tuple(kept for kept in deleting if kept is not topic)
            self._content = replace(self._content, deleting=deleting)

    def reserve_producer_ids(self, count: int) -> ProducerId:
        """The first of so many ids that no producer has had or will get but by this call."""
        first = self._content.next_producer_id
        self._keep(replace(self._content, next_producer_id=ProducerId(first + count)))
        return first

    def _grow(self, topic: KeptTopic, now: Millis) -> None:
        """Makes the partitions a topic lacks, then says so in the file: first things first."""
        logs = self._logs[topic.name]
        count_before = len(logs)
        try:
            # What a deleted topic of this name has left must not be taken for this one's.
            self._checkpoints.flush()
            for gone in self._content.deleting:
                if gone.name == topic.name:
                    self._directories.remove(gone)
            for number in range(count_before, topic.partition_count):
                self._open_partition(topic, Partition(number), now)
            self._put(topic)
        except BaseException:
            for log in logs[count_before:]:
                log.abandon()
            del logs[count_before:]
            if not logs:
                del self._logs[topic.name]
            with contextlib.suppress(StorageError):
                self._directories.remove(topic, first=count_before)
            raise

    def _put(self, topic: KeptTopic) -> None:
        self._keep(replace(self._content, topics={**self._content.topics, topic.name: topic}))

    def _keep(self, content: Content) -> None:
        write_content(self._disk, content)
        self._content = content

    def _get_topic(self, name: Topic) -> KeptTopic:
        topic = self._content.topics.get(name)
        if topic is None:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        return topic

    # All partitions at once

    def take_unsynced(self) -> tuple[Unsynced, ...]:
        """What was written anywhere since the last call, to be synced by whom it may concern."""
        unsynced = tuple(each for log in self._written for each in log.take_unsynced())
        self._written.clear()
        return unsynced

    def clean(self, now: Millis, budget_bytes: int | None = None) -> CleanedCatalog:
        """Retention everywhere, and compaction in one partition after the other, as far as due.

        Compaction reads about budget_bytes in all; one partition's is finished before the next
        begins, so that only one holds its keys in memory. While it goes on, the others are looked
        at every so often: with many of them, that takes longer than to go on.
        """
        if self._compacting is not None and budget_bytes is not None and now < self._look_around_at:
            return self._go_on(self._compacting, budget_bytes)
        self._look_around_at = Millis(now + _LOOK_AROUND_MS)
        cleaned: list[CleanedPartition] = []
        left = budget_bytes
        is_done = True
        for log in [log for logs in self._logs.values() for log in logs]:
            may_compact = self._compacting in (None, log) and (left is None or left > 0)
            result = self._clean_partition(log, now, left, may_compact=may_compact)
            is_done = is_done and result.is_done
            if left is not None:
                left -= result.bytes_compacted
            if may_compact:
                self._compacting = None if result.is_done else log
            if result.has_news:
                cleaned.append(
                    CleanedPartition(topic=log.topic, partition=log.partition, cleaned=result)
                )
        failure = None
        try:
            self._checkpoints.flush()
        except StorageError as error:
            failure = str(error)
        return CleanedCatalog(partitions=tuple(cleaned), is_done=is_done, failure=failure)

    def _go_on(self, log: PartitionLog, budget_bytes: int) -> CleanedCatalog:
        """With the round that is under way. After it another may be due; but after a failure it
        would be the same one again."""
        try:
            result = log.compact(budget_bytes)
        except StorageError as error:
            result = Cleaned(start_offset=log.start_offset, failure=str(error))
        if result.is_done:
            self._compacting = None
        cleaned = CleanedPartition(topic=log.topic, partition=log.partition, cleaned=result)
        return CleanedCatalog(
            partitions=(cleaned,) if result.has_news else (),
            is_done=result.failure is not None,
            failure=None,
        )

    @staticmethod
    def _clean_partition(
        log: PartitionLog, now: Millis, budget_bytes: int | None, *, may_compact: bool
    ) -> Cleaned:
        try:
            return log.clean(now, budget_bytes, may_compact=may_compact)
        except StorageError as error:
            return Cleaned(start_offset=log.start_offset, failure=str(error))

    def abandon(self) -> None:
        """The directory is free, and the next start looks at it as after a crash."""
        self._lock.release()

    def close(self, now: Millis) -> None:
        """Everything is kept and the directory free; the next start need not look for damage.

        A StorageError says that it will have to.
        """
        failure: StorageError | None = None
        try:
            for log in [log for logs in self._logs.values() for log in logs]:
                try:
                    log.close(now)
                except StorageError as error:
                    failure = error
            self._checkpoints.flush()
            if failure is not None:
                raise failure
            self._disk.write_atomically(names.CLEAN_SHUTDOWN, encode_clean_shutdown())
        finally:
            self._lock.release()


def _new_content(cluster_id: str) -> Content:
    return Content(cluster_id=cluster_id, next_producer_id=ProducerId(0), topics={}, deleting=())


def _make_id(name: str, now: Millis) -> str:
    """Sixteen bytes in Kafka's spelling, the same for the same name and time."""
    digest = hashlib.sha256(f"{name} {now}".encode()).digest()
    return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")


def _check_count(name: Topic, count: int, *, more_than: int) -> None:
    if count <= more_than:
        reason = f"topic {name} cannot have {count} partitions, only more than {more_than}"
        raise Refused(ErrorCode.INVALID_PARTITIONS, reason)
