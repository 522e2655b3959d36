"""All topics of a data directory with their settings and partition logs.

The catalog file decides which partitions exist: missing partition directories are created, and
directories that it does not name are removed or renamed as stray. Callers pass ids and the time.
"""

import base64
import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from kohort.log import file_names
from kohort.log.catalog_file import (
    CatalogContent,
    CatalogTopic,
    find_content,
    lock_directory,
    write_content,
)
from kohort.log.checkpoint import Checkpoints, encode_clean_shutdown
from kohort.log.disk import Disk, Lock
from kohort.log.errors import RequestRejected, StorageError
from kohort.log.limits import Limits
from kohort.log.log_cleaner import CleanResult
from kohort.log.os_disk import OsDisk
from kohort.log.partition import PartitionLog
from kohort.log.partition_directories import PartitionDirectories
from kohort.log.recovery import LoadParameters, load_partition
from kohort.log.segment_swap import Repair
from kohort.log.sync_queue import PendingSync
from kohort.log.topic_config import parse_settings
from kohort.types import ErrorCode, Millis, Partition, ProducerId, Topic, Uuid, value

_NO_DEFAULTS: Final[Mapping[str, str]] = {}
_LIMITS: Final = Limits()

_FULL_PASS_INTERVAL_MS: Final = 1_000
"""The interval of passes over all partitions while one of them is being compacted."""


@value
class PartitionCleanResult:
    topic: Topic
    partition: Partition
    cleaned: CleanResult


@value
class CatalogCleanResult:
    """The results of the partitions where cleaning changed something or failed."""

    partitions: tuple[PartitionCleanResult, ...]
    is_done: bool
    """False if the budget was not sufficient: call `clean` again soon."""
    failure: str | None
    """Why the checkpoints could not be written. The next call tries again."""


class Catalog:
    def __init__(
        self,
        disk: Disk,
        lock: Lock,
        content: CatalogContent,
        defaults: Mapping[str, str],
        limits: Limits,
    ) -> None:
        """Use `open` instead."""
        self._disk = disk
        self._lock = lock
        self._content = content
        self._defaults = defaults
        self._limits = limits
        listed = disk.list("")
        self._is_clean = file_names.CLEAN_SHUTDOWN in listed
        self._checkpoints = Checkpoints(disk, listed)
        self._directories = PartitionDirectories(disk)
        self._logs: dict[Topic, list[PartitionLog]] = {}
        self._by_id = {topic.topic_id: topic.name for topic in content.topics.values()}
        self._written: dict[PartitionLog, None] = {}
        self._compacting: PartitionLog | None = None
        self._last_full_pass_ms = Millis(0)

    @classmethod
    def open(
        cls,
        where: Disk | Path | str,
        now: Millis,
        defaults: Mapping[str, str] = _NO_DEFAULTS,
        *,
        cluster_id: str | None = None,
        limits: Limits = _LIMITS,
    ) -> "tuple[Catalog, tuple[Repair, ...]]":
        """Open a data directory, or create it. Returns the catalog and the repairs made.

        `defaults` are topic settings for topics without an override. A new directory stores
        `cluster_id`; if None, an id is derived from the directory name and the time.
        """
        parse_settings(_NO_DEFAULTS, defaults)
        disk = OsDisk(Path(where)) if isinstance(where, str | Path) else where
        lock = lock_directory(disk)
        try:
            content = find_content(disk)
            if content is None:
                content = _new_content(cluster_id or _derive_cluster_id(disk.name, now))
                write_content(disk, content)
            catalog = cls(disk, lock, content, defaults, limits)
            return catalog, tuple(catalog._load(now))
        except BaseException:
            lock.release()
            raise

    def _load(self, now: Millis) -> Iterator[Repair]:
        if self._is_clean:
            # From now on a restart without a clean shutdown needs recovery.
            self._disk.remove(file_names.CLEAN_SHUTDOWN)
            self._disk.sync_directory("")
        yield from self._directories.clean_up(self._content)
        self._checkpoints.keep_only(set(self._content.topics))
        for topic in self._content.topics.values():
            self._logs[topic.name] = []
            for number in range(topic.partition_count):
                yield from self._open_partition(topic, Partition(number), now)
        self._is_clean = False

    def _open_partition(
        self, topic: CatalogTopic, partition: Partition, now: Millis
    ) -> tuple[Repair, ...]:
        directory = self._directories.prepare(topic, partition)
        settings = parse_settings(topic.settings, self._defaults)
        parameters = LoadParameters(
            start_offset=self._checkpoints.start_offsets.find(topic.name, partition),
            recovery_point=self._checkpoints.recovery_points.find(topic.name, partition),
            is_clean=self._is_clean,
            index_interval_bytes=settings.index_interval_bytes,
        )
        loaded = load_partition(self._disk, directory, parameters, self._limits, now)
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
        return loaded.repairs

    # Lookup

    @property
    def directory(self) -> str:
        return self._disk.name

    @property
    def cluster_id(self) -> str:
        return self._content.cluster_id

    @property
    def topics(self) -> tuple[CatalogTopic, ...]:
        return tuple(self._content.topics.values())

    def find_topic(self, name: Topic) -> CatalogTopic | None:
        return self._content.topics.get(name)

    def find_topic_by_id(self, topic_id: Uuid) -> CatalogTopic | None:
        name = self._by_id.get(topic_id)
        return None if name is None else self._content.topics[name]

    def partition(self, topic: Topic, partition: int) -> PartitionLog | None:
        logs = self._logs.get(topic)
        if logs is None or not 0 <= partition < len(logs):
            return None
        return logs[partition]

    # Topic changes

    def create_topic(
        self,
        name: Topic,
        topic_id: Uuid,
        partition_count: int,
        settings: Mapping[str, str],
        now: Millis,
    ) -> CatalogTopic:
        """Create a topic with empty partitions. Raises RequestRejected for invalid arguments."""
        file_names.check_topic_name(name)
        if name in self._content.topics:
            raise RequestRejected(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} exists")
        assert len(topic_id) == 16, "a topic id has 16 bytes"
        assert topic_id not in self._by_id, "topic ids are unique"
        _check_count(name, partition_count, more_than=0)
        parse_settings(settings, self._defaults)
        topic = CatalogTopic(
            name=name,
            topic_id=topic_id,
            partition_count=partition_count,
            settings=dict(settings),
        )
        self._logs[name] = []
        self._create_partitions(topic, now)
        self._by_id[topic_id] = name
        return topic

    def add_partitions(self, name: Topic, partition_count: int, now: Millis) -> CatalogTopic:
        """Increase the number of partitions to `partition_count`."""
        topic = self._get_topic(name)
        _check_count(name, partition_count, more_than=topic.partition_count)
        topic = replace(topic, partition_count=partition_count)
        self._create_partitions(topic, now)
        return topic

    def alter_settings(self, name: Topic, settings: Mapping[str, str]) -> CatalogTopic:
        """Replace all overrides of a topic."""
        parsed = parse_settings(settings, self._defaults)
        topic = replace(self._get_topic(name), settings=dict(settings))
        self._put(topic)
        for log in self._logs[name]:
            log.apply_settings(parsed)
        return topic

    def delete_topic(self, name: Topic) -> None:
        """The topic is deleted when the catalog file is written. Its directories are removed now,
        or at the next start if that fails."""
        topic = self._get_topic(name)
        topics = {key: each for key, each in self._content.topics.items() if key != name}
        deleting = (*self._content.deleting, topic)
        self._write_content(replace(self._content, topics=topics, deleting=deleting))
        del self._by_id[topic.topic_id]
        for log in self._logs.pop(name):
            log.abandon()
            if self._compacting is log:
                self._compacting = None
            self._written.pop(log, None)
            self._checkpoints.discard(name, log.partition)
        # The topic is deleted in any case. The next start removes its remaining directories.
        with contextlib.suppress(StorageError):
            self._checkpoints.flush()
            self._directories.remove(topic)
            deleting = tuple(each for each in deleting if each is not topic)
            self._content = replace(self._content, deleting=deleting)

    def reserve_producer_ids(self, count: int) -> ProducerId:
        """Reserve `count` unused producer ids; returns the first one."""
        first = self._content.next_producer_id
        self._write_content(replace(self._content, next_producer_id=ProducerId(first + count)))
        return first

    def _create_partitions(self, topic: CatalogTopic, now: Millis) -> None:
        """Create the missing partitions of a topic, then write the catalog file."""
        logs = self._logs[topic.name]
        count_before = len(logs)
        try:
            # First remove the remains of a deleted topic with the same name.
            self._checkpoints.flush()
            for deleted in self._content.deleting:
                if deleted.name == topic.name:
                    self._directories.remove(deleted)
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

    def _put(self, topic: CatalogTopic) -> None:
        self._write_content(
            replace(self._content, topics={**self._content.topics, topic.name: topic})
        )

    def _write_content(self, content: CatalogContent) -> None:
        write_content(self._disk, content)
        self._content = content

    def _get_topic(self, name: Topic) -> CatalogTopic:
        topic = self._content.topics.get(name)
        if topic is None:
            raise RequestRejected(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} does not exist"
            )
        return topic

    # All partitions

    def take_pending_syncs(self) -> tuple[PendingSync, ...]:
        """The files written since the last call. The caller syncs them, on any thread."""
        pending = tuple(each for log in self._written for each in log.take_pending_syncs())
        self._written.clear()
        return pending

    def clean(self, now: Millis, budget_bytes: int | None = None) -> CatalogCleanResult:
        """Run retention in all partitions, and compaction in one partition after the other.

        Compaction reads about `budget_bytes` per call. It finishes one partition before the next,
        so that only one holds its keys in memory. During a compaction round most calls only
        continue it, because a pass over many partitions takes longer than a compaction step.
        """
        if (
            self._compacting is not None
            and budget_bytes is not None
            # The clock may have been set back.
            and 0 <= now - self._last_full_pass_ms < _FULL_PASS_INTERVAL_MS
        ):
            return self._continue_compaction(self._compacting, budget_bytes)
        self._last_full_pass_ms = now
        cleaned: list[PartitionCleanResult] = []
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
            if result.has_changes:
                cleaned.append(
                    PartitionCleanResult(topic=log.topic, partition=log.partition, cleaned=result)
                )
        failure = None
        try:
            self._checkpoints.flush()
        except StorageError as error:
            failure = str(error)
        return CatalogCleanResult(partitions=tuple(cleaned), is_done=is_done, failure=failure)

    def _continue_compaction(self, log: PartitionLog, budget_bytes: int) -> CatalogCleanResult:
        """Continue the current compaction round. After success `is_done` is False, because other
        rounds may be due. After a failure it is True, to avoid an immediate retry."""
        try:
            result = log.compact(budget_bytes)
        except StorageError as error:
            result = CleanResult(start_offset=log.start_offset, failure=str(error))
        if result.is_done:
            self._compacting = None
        cleaned = PartitionCleanResult(topic=log.topic, partition=log.partition, cleaned=result)
        return CatalogCleanResult(
            partitions=(cleaned,) if result.has_changes else (),
            is_done=result.failure is not None,
            failure=None,
        )

    @staticmethod
    def _clean_partition(
        log: PartitionLog, now: Millis, budget_bytes: int | None, *, may_compact: bool
    ) -> CleanResult:
        try:
            return log.clean(now, budget_bytes, may_compact=may_compact)
        except StorageError as error:
            return CleanResult(start_offset=log.start_offset, failure=str(error))

    def abandon(self) -> None:
        """Release the lock without a clean shutdown: the next start runs recovery."""
        self._lock.release()

    def close(self, now: Millis) -> None:
        """Clean shutdown: sync and checkpoint everything and release the lock.

        After a StorageError the next start runs recovery.
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
            self._disk.write_atomically(file_names.CLEAN_SHUTDOWN, encode_clean_shutdown())
        finally:
            self._lock.release()


def _new_content(cluster_id: str) -> CatalogContent:
    return CatalogContent(
        cluster_id=cluster_id, next_producer_id=ProducerId(0), topics={}, deleting=()
    )


def _derive_cluster_id(name: str, now: Millis) -> str:
    """An id in Kafka's format, derived from name and time."""
    digest = hashlib.sha256(f"{name} {now}".encode()).digest()
    return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")


def _check_count(name: Topic, count: int, *, more_than: int) -> None:
    if count <= more_than:
        reason = f"topic {name}: {count} partitions, must be more than {more_than}"
        raise RequestRejected(ErrorCode.INVALID_PARTITIONS, reason)
