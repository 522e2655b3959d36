"""All topics of a data directory with their settings and partition logs.

The catalog decides which partitions exist. The directory of a partition is created by its first
append; directories that the catalog does not name are removed or renamed as stray. So the time of a
topic change does not depend on the number of topics and partitions. Callers pass ids and the time.
"""

import base64
import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Final

from kohort.log import file_names
from kohort.log.catalog_cleaner import CatalogCleaner, CatalogCleanResult
from kohort.log.catalog_file import (
    CatalogChange,
    CatalogContent,
    CatalogTopic,
    StoredCatalog,
    find_catalog,
    lock_directory,
)
from kohort.log.catalog_journal import CatalogJournal, write_new_catalog
from kohort.log.checkpoint import Checkpoints, encode_clean_shutdown
from kohort.log.disk import Disk, Lock
from kohort.log.errors import (
    CorruptFile,
    DataDirectoryError,
    RecordsMissing,
    RequestRejected,
    StorageError,
)
from kohort.log.limits import Limits
from kohort.log.os_disk import OsDisk
from kohort.log.partition import PartitionLog
from kohort.log.partition_directories import PartitionDirectories
from kohort.log.recovery import (
    LoadedLog,
    LoadParameters,
    load_partition,
    refuse_partition,
    unwritten_partition,
)
from kohort.log.repair import OnRepair, Repair, RepairKind, ignore_repair
from kohort.log.sync_queue import PendingSync
from kohort.log.topic_config import SETTINGS, TopicSettings, parse_settings
from kohort.types import ErrorCode, Millis, Partition, ProducerId, Topic, Uuid

_NO_DEFAULTS: Final[Mapping[str, str]] = {}
_LIMITS: Final = Limits()

_PARSED_SETTINGS_MAX: Final = 1_000
"""Different overrides whose parsed form is kept; protects memory."""


class Catalog:
    def __init__(
        self,
        disk: Disk,
        lock: Lock,
        stored: StoredCatalog,
        defaults: Mapping[str, str],
        limits: Limits,
    ) -> None:
        """Use `open` instead."""
        self._disk = disk
        self._lock = lock
        self._journal = CatalogJournal(disk, stored)
        self._content = stored.content
        self._defaults = defaults
        self._limits = limits
        listed = disk.list("")
        self._is_clean = file_names.CLEAN_SHUTDOWN in listed
        self._directories = PartitionDirectories(disk, listed)
        self._checkpoints = Checkpoints(disk, listed, self._directories.sync_names)
        self._logs: dict[Topic, list[PartitionLog | None]] = {}
        """None for a partition that was not used yet and has no files."""
        self._by_id = {topic.topic_id: topic.name for topic in self._content.topics.values()}
        self._reserved: set[Topic] = set()
        """The names of topics that are being created."""
        self._deleted_names: set[Topic] = set()
        """Topics that may have entries in the checkpoint files, although they are deleted."""
        self._parsed: dict[tuple[tuple[str, str], ...], TopicSettings] = {}
        self._written: dict[PartitionLog, None] = {}
        self._cleaner = CatalogCleaner(
            self._files, self._flush_checkpoints, self._directories, self._journal
        )
        self._accepted_losses: Set[str] = frozenset()
        self.on_repair: OnRepair = ignore_repair
        """Gets what is found and repaired after the start."""

    @classmethod
    def open(
        cls,
        where: Disk | Path | str,
        now: Millis,
        defaults: Mapping[str, str] = _NO_DEFAULTS,
        *,
        cluster_id: str | None = None,
        limits: Limits = _LIMITS,
        accepted_losses: Set[str] = frozenset(),
    ) -> "tuple[Catalog, tuple[Repair, ...]]":
        """Open a data directory, or create it. Returns the catalog and the repairs made.

        A partition with missing or unreadable files is refused, and all others are opened.
        `accepted_losses` are the directories of partitions that are opened in spite of missing
        records. Later repairs go to `on_repair`.

        `defaults` are topic settings for topics without an override. A new directory stores
        `cluster_id`; if None, an id is derived from the directory name and the time.
        """
        parse_settings(_NO_DEFAULTS, defaults)
        disk = where
        if isinstance(disk, str | Path):
            disk = OsDisk(Path(disk), limits.open_files_max)
        lock = lock_directory(disk)
        try:
            stored = find_catalog(disk)
            if stored is None:
                stored = _create(disk, cluster_id or _derive_cluster_id(disk.name, now))
            catalog = cls(disk, lock, stored, defaults, limits)
            catalog._accepted_losses = accepted_losses
            return catalog, tuple(catalog._load(now))
        except BaseException:
            lock.release()
            raise

    def _load(self, now: Millis) -> Iterator[Repair]:
        if self._is_clean:
            # From now on a restart without a clean shutdown needs recovery.
            self._disk.remove(file_names.CLEAN_SHUTDOWN)
            self._disk.sync_directory("")
        for path in self._checkpoints.find_damaged():
            reason = "its content is damaged, so all logs are validated and no loss is noticed"
            yield Repair(path=path, reason=reason)
        yield from self._directories.clean_up(self._content)
        if not self._is_clean:
            # The process that was killed may have changed the catalog, or created directories,
            # without syncing that. What this process serves must survive a power failure.
            self._journal.sync_loaded()
            self._disk.sync_directory("")
        self._checkpoints.keep_only(set(self._content.topics))
        for topic in self._content.topics.values():
            logs: list[PartitionLog | None] = [None] * topic.partition_count
            self._logs[topic.name] = logs
            for number in map(Partition, range(topic.partition_count)):
                if self._is_stored(topic.name, number):
                    logs[number], repairs = self._open_or_refuse(topic, number, now)
                    yield from repairs
        self._is_clean = False
        self._accepted_losses = frozenset()
        with contextlib.suppress(StorageError):
            # On a full disk the journal stays long.
            self._journal.shorten()

    def _is_stored(self, topic: Topic, partition: Partition) -> bool:
        """Whether the partition was written: it has a directory, or had one."""
        return (
            self._directories.has(topic, partition)
            or self._checkpoints.recovery_points.find(topic, partition) is not None
            or self._checkpoints.start_offsets.find(topic, partition) is not None
        )

    def _open_or_refuse(
        self, topic: CatalogTopic, partition: Partition, now: Millis
    ) -> tuple[PartitionLog, tuple[Repair, ...]]:
        directory = file_names.partition_directory(topic.name, partition)
        parameters = self._load_parameters(topic, partition)
        try:
            parameters = replace(parameters, listed=self._directories.prepare(topic, partition))
            loaded = load_partition(self._disk, directory, parameters, self._limits, now)
        except (CorruptFile, RecordsMissing, DataDirectoryError) as error:
            reason = error.reason if isinstance(error, RecordsMissing) else str(error)
            known = refuse_partition(self._disk, directory, parameters, self._limits)
            refusal = StorageError(directory, "open", reason)
            repair = Repair(path=directory, reason=reason, kind=RepairKind.PARTITION_REFUSED)
            return self._new_log(topic, partition, known, refusal=refusal), (repair,)
        return self._new_log(topic, partition, loaded), loaded.repairs

    def _load_parameters(self, topic: CatalogTopic, partition: Partition) -> LoadParameters:
        settings = self._parse(topic.settings)
        directory = file_names.partition_directory(topic.name, partition)
        return LoadParameters(
            listed={},
            start_offset=self._checkpoints.start_offsets.find(topic.name, partition),
            recovery_point=self._checkpoints.recovery_points.find(topic.name, partition),
            is_clean=self._is_clean,
            index_interval_bytes=settings.index_interval_bytes,
            accepts_loss=directory in self._accepted_losses,
        )

    def _unwritten_partition(self, topic: CatalogTopic, partition: Partition) -> PartitionLog:
        """The log of a partition without files; its first append creates them."""
        directory = file_names.partition_directory(topic.name, partition)
        loaded = unwritten_partition(self._disk, directory, self._limits)
        return self._new_log(
            topic, partition, loaded, lambda: self._directories.prepare(topic, partition)
        )

    def _new_log(
        self,
        topic: CatalogTopic,
        partition: Partition,
        loaded: LoadedLog,
        create_directory: Callable[[], object] | None = None,
        refusal: StorageError | None = None,
    ) -> PartitionLog:
        return PartitionLog(
            disk=self._disk,
            directory=file_names.partition_directory(topic.name, partition),
            topic=topic.name,
            partition=partition,
            settings=self._parse(topic.settings),
            limits=self._limits,
            checkpoints=self._checkpoints,
            loaded=loaded,
            written=self._written,
            create_directory=create_directory,
            on_repair=self._report,
            refusal=refusal,
        )

    def _report(self, repair: Repair) -> None:
        self.on_repair(repair)

    def _parse(self, settings: Mapping[str, str]) -> TopicSettings:
        """Most topics have the same overrides, or none."""
        if len(settings) > len(SETTINGS):
            # One of them is unknown. A request may have a hundred thousand, and sorting takes long.
            return parse_settings(settings, self._defaults)
        key = tuple(sorted(settings.items()))
        parsed = self._parsed.get(key)
        if parsed is None:
            parsed = parse_settings(settings, self._defaults)
            if len(self._parsed) < _PARSED_SETTINGS_MAX:
                self._parsed[key] = parsed
        return parsed

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
        log = logs[partition]
        if log is None:
            owner = self._content.topics[topic]
            log = logs[partition] = self._unwritten_partition(owner, Partition(partition))
        return log

    # Topic changes. Each is one durable change of the catalog.

    def create_topic(
        self,
        name: Topic,
        topic_id: Uuid,
        partition_count: int,
        settings: Mapping[str, str],
    ) -> CatalogTopic:
        """Create a topic with empty partitions. Raises RequestRejected for invalid arguments."""
        topic = CatalogTopic(
            name=name,
            topic_id=topic_id,
            partition_count=partition_count,
            settings=dict(settings),
        )
        self.create_topics((topic,))
        return topic

    def create_topics(self, topics: Sequence[CatalogTopic]) -> None:
        """Create all of the topics, or none. Raises RequestRejected if one of them is invalid."""
        for _ in self.create_topics_stepwise(topics):
            pass

    def create_topics_stepwise(self, topics: Sequence[CatalogTopic]) -> Iterator[None]:
        """Like `create_topics`, in short steps; until the last one only the names are reserved.

        There are several steps only if a deleted topic of the same name has many directories left.
        """
        names = {topic.name for topic in topics}
        for topic in topics:
            self.check_new_topic(topic)
        assert len(names) == len(topics), "the names are different"
        self._reserved.update(names)
        try:
            deleted = [each for each in self._content.deleting.values() if each.name in names]
            for each in deleted:
                yield from self._directories.rename_all(each.topic_id)
            if not self._deleted_names.isdisjoint(names):
                # A new topic must not inherit the checkpoints of a deleted one.
                self._flush_checkpoints()
            removed = tuple(each.topic_id for each in deleted)
            self._journal.write(CatalogChange(topics=tuple(topics), removed=removed))
        finally:
            self._reserved.difference_update(names)
        for topic_id in removed:
            self._directories.forget(topic_id)
        for topic in topics:
            self._logs[topic.name] = [None] * topic.partition_count
            self._by_id[topic.topic_id] = topic.name

    def check_new_topic(self, topic: CatalogTopic) -> None:
        """Raises RequestRejected if a topic cannot be created."""
        name = topic.name
        file_names.check_topic_name(name)
        if name in self._content.topics or name in self._reserved:
            raise RequestRejected(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} exists")
        assert len(topic.topic_id) == 16, "a topic id has 16 bytes"
        assert topic.topic_id not in self._by_id, "topic ids are unique"
        _check_count(name, topic.partition_count, more_than=0)
        self._parse(topic.settings)

    def check_settings(self, settings: Mapping[str, str]) -> None:
        """Raises RequestRejected if overrides are invalid."""
        self._parse(settings)

    def add_partitions(self, name: Topic, partition_count: int) -> CatalogTopic:
        """Increase the number of partitions to `partition_count`."""
        topic = self._get_topic(name)
        _check_count(name, partition_count, more_than=topic.partition_count)
        added = partition_count - topic.partition_count
        topic = replace(topic, partition_count=partition_count)
        self._journal.write(CatalogChange(topics=(topic,)))
        self._logs[name] += [None] * added
        return topic

    def alter_settings(self, name: Topic, settings: Mapping[str, str]) -> CatalogTopic:
        """Replace all overrides of a topic."""
        parsed = self._parse(settings)
        topic = replace(self._get_topic(name), settings=dict(settings))
        self._journal.write(CatalogChange(topics=(topic,)))
        for log in self._logs[name]:
            if log is not None:
                log.apply_settings(parsed)
        return topic

    def delete_topic(self, name: Topic) -> None:
        self.delete_topics((name,))

    def delete_topics(self, names: Sequence[Topic]) -> None:
        """Delete all of the topics, or none. `clean` removes their directories in steps, and the
        next start those that are left."""
        topics = [self._get_topic(name) for name in names]
        self._journal.write(CatalogChange(deleted=tuple(names)))
        for topic in topics:
            del self._by_id[topic.topic_id]
            for log in self._logs.pop(topic.name):
                if log is not None:
                    log.abandon()
                    self._written.pop(log, None)
                    self._checkpoints.discard(topic.name, log.partition)
            self._directories.delete(topic)
        self._deleted_names.update(names)

    def reserve_producer_ids(self, count: int) -> ProducerId:
        """Reserve `count` unused producer ids; returns the first one."""
        first = self._content.next_producer_id
        self._journal.write(CatalogChange(next_producer_id=ProducerId(first + count)))
        return first

    def _get_topic(self, name: Topic) -> CatalogTopic:
        topic = self._content.topics.get(name)
        if topic is None:
            raise RequestRejected(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} does not exist"
            )
        return topic

    def _flush_checkpoints(self) -> None:
        self._checkpoints.flush()
        self._deleted_names.clear()

    # All partitions

    def take_pending_syncs(self) -> tuple[PendingSync, ...]:
        """The files written since the last call. The caller syncs them, on any thread."""
        pending = tuple(each for log in self._written for each in log.take_pending_syncs())
        self._written.clear()
        return pending

    def clean(self, now: Millis, budget_bytes: int | None = None) -> CatalogCleanResult:
        """Run retention and compaction, and remove what is left of deleted topics. With a budget
        it does a part of that."""
        return self._cleaner.clean(now, budget_bytes)

    def _files(self) -> list[PartitionLog]:
        """The logs that have files and can be used."""
        return [
            log
            for logs in self._logs.values()
            for log in logs
            if log is not None and log.has_files and not log.is_refused
        ]

    def abandon(self) -> None:
        """Release the lock without a clean shutdown: the next start runs recovery."""
        self._lock.release()

    def close(self, now: Millis) -> None:
        """Clean shutdown: sync and checkpoint everything and release the lock.

        After a StorageError the next start runs recovery.
        """
        failure: StorageError | None = None
        try:
            for log in self._files():
                try:
                    log.close(now)
                except StorageError as error:
                    failure = error
            self._directories.sync_names()
            self._checkpoints.flush()
            if failure is not None:
                raise failure
            self._disk.write_atomically(file_names.CLEAN_SHUTDOWN, encode_clean_shutdown())
        finally:
            self._journal.close()
            self._lock.release()


def _create(disk: Disk, cluster_id: str) -> StoredCatalog:
    content = CatalogContent(cluster_id=cluster_id)
    return StoredCatalog(
        content=content,
        snapshot_bytes=write_new_catalog(disk, content),
        journal_bytes=0,
        has_journal=True,
    )


def _derive_cluster_id(name: str, now: Millis) -> str:
    """An id in Kafka's format, derived from name and time."""
    digest = hashlib.sha256(f"{name} {now}".encode()).digest()
    return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")


def _check_count(name: Topic, count: int, *, more_than: int) -> None:
    if count <= more_than:
        reason = f"topic {name}: {count} partitions, must be more than {more_than}"
        raise RequestRejected(ErrorCode.INVALID_PARTITIONS, reason)
