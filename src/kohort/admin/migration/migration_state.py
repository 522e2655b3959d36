"""The checkpoint file of a migration: an SQLite database that survives kill -9.

Before a batch is sent, its intent is stored; after the target has it, its offsets are. So the next
run knows which batches of the target it wrote, whatever happened in between.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kohort.admin.errors import InvalidRequest
from kohort.admin.migration import offset_map
from kohort.admin.migration.offset_map import MappedRange
from kohort.types import (
    GroupId,
    Offset,
    Partition,
    ProducerEpoch,
    ProducerId,
    Topic,
    TopicPartition,
    Uuid,
    value,
)

_FORMAT: Final = "1"
_BUSY_S: Final = 1.0

_TABLES: Final = """
CREATE TABLE facts (name TEXT PRIMARY KEY, content TEXT NOT NULL);
CREATE TABLE topics (
    topic TEXT PRIMARY KEY, source_id BLOB NOT NULL, target_id BLOB NOT NULL,
    after_copy TEXT NOT NULL, is_held INTEGER NOT NULL
);
CREATE TABLE partitions (
    topic TEXT, number INTEGER, source_next INTEGER NOT NULL, target_next INTEGER NOT NULL,
    copied INTEGER NOT NULL, checksum INTEGER NOT NULL,
    verified INTEGER NOT NULL, verified_checksum INTEGER NOT NULL, verified_next INTEGER NOT NULL,
    PRIMARY KEY (topic, number)
);
CREATE TABLE stretches (
    topic TEXT, number INTEGER, source_first INTEGER, source_next INTEGER NOT NULL,
    target INTEGER NOT NULL, count INTEGER NOT NULL, gaps BLOB,
    PRIMARY KEY (topic, number, source_first)
) WITHOUT ROWID;
CREATE TABLE intents (
    topic TEXT, number INTEGER, copied INTEGER, count INTEGER, source_next INTEGER NOT NULL,
    stretch_first INTEGER NOT NULL, stretch_next INTEGER NOT NULL, gaps BLOB,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (topic, number, copied, count)
);
CREATE TABLE offsets (
    group_id TEXT, topic TEXT, number INTEGER, target INTEGER NOT NULL,
    PRIMARY KEY (group_id, topic, number)
);
"""


@value
class TopicCheckpoint:
    source_id: Uuid
    target_id: Uuid
    after_copy: dict[str, str | None]
    """The config of the target topic after the copy; None removes an override."""
    is_held: bool
    """Whether the target topic has the config for the copy, which keeps all records."""


@value
class PartitionCheckpoint:
    source_next: Offset
    """The next offset to read from the source."""
    target_next: Offset
    """The offset after the last batch known to be in the target."""
    copied: int
    checksum: int
    verified: int
    verified_checksum: int
    verified_next: Offset
    """The next offset of the target to verify."""


@value
class BatchIntent:
    """A batch that is about to be sent, and the checkpoint once the target has it."""

    partition: TopicPartition
    copied: int
    """Records copied before it."""
    source_next: Offset
    mapped: MappedRange
    """Its target offset is not known yet."""
    checksum: int


class MigrationState:
    """Opened by `open_state`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    # Clusters and producer

    def find_fact(self, name: str) -> str | None:
        row = self._row("SELECT content FROM facts WHERE name = ?", name)
        return None if row is None else str(row[0])

    def save_fact(self, name: str, content: str) -> None:
        with self._transaction():
            self._execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", name, content)

    def find_producer(self) -> tuple[ProducerId, ProducerEpoch] | None:
        saved = self.find_fact("producer")
        if saved is None:
            return None
        producer_id, epoch = json.loads(saved)
        return ProducerId(producer_id), ProducerEpoch(epoch)

    def save_producer(self, producer_id: ProducerId, epoch: ProducerEpoch) -> None:
        self.save_fact("producer", json.dumps([producer_id, epoch]))

    # Topics

    def find_topic(self, topic: Topic) -> TopicCheckpoint | None:
        found = self._row(
            "SELECT source_id, target_id, after_copy, is_held FROM topics WHERE topic = ?", topic
        )
        if found is None:
            return None
        source_id, target_id, after_copy, is_held = found
        return TopicCheckpoint(
            source_id=Uuid(source_id),
            target_id=Uuid(target_id),
            after_copy=json.loads(after_copy),
            is_held=bool(is_held),
        )

    def save_topic(self, topic: Topic, saved: TopicCheckpoint) -> None:
        with self._transaction():
            self._execute(
                "INSERT OR REPLACE INTO topics VALUES (?, ?, ?, ?, ?)",
                *(topic, saved.source_id, saved.target_id),
                *(json.dumps(saved.after_copy), saved.is_held),
            )

    # Partitions

    def find_partition(self, partition: TopicPartition) -> PartitionCheckpoint | None:
        names = ", ".join(_PARTITION_FIELDS)
        row = self._row(
            f"SELECT {names} FROM partitions WHERE topic = ? AND number = ?",  # noqa: S608  # fixed
            *partition,
        )
        if row is None:
            return None
        return PartitionCheckpoint(**dict(zip(_PARTITION_FIELDS, row, strict=True)))

    def get_partition(self, partition: TopicPartition) -> PartitionCheckpoint:
        found = self.find_partition(partition)
        assert found is not None, f"{partition} has a checkpoint"
        return found

    def create_partition(
        self, partition: TopicPartition, source: Offset, target: Offset
    ) -> PartitionCheckpoint:
        checkpoint = PartitionCheckpoint(
            source_next=source,
            target_next=target,
            copied=0,
            checksum=0,
            verified=0,
            verified_checksum=0,
            verified_next=target,
        )
        with self._transaction():
            self._save_partition(partition, checkpoint)
        return checkpoint

    def mark_verified(self, partition: TopicPartition) -> None:
        """All copied records have been verified in the target."""
        with self._transaction():
            self._execute(
                "UPDATE partitions SET verified = copied, verified_checksum = checksum, "
                "verified_next = target_next WHERE topic = ? AND number = ?",
                *partition,
            )

    def mark_read(self, partition: TopicPartition, source_next: Offset) -> None:
        """The source has been read up to this offset."""
        with self._transaction():
            self._execute(
                "UPDATE partitions SET source_next = max(source_next, ?) "
                "WHERE topic = ? AND number = ?",
                *(source_next, *partition),
            )

    def _save_partition(self, partition: TopicPartition, saved: PartitionCheckpoint) -> None:
        values = [getattr(saved, name) for name in _PARTITION_FIELDS]
        marks = ", ".join("?" * (2 + len(values)))
        self._execute(
            f"INSERT OR REPLACE INTO partitions VALUES ({marks})",  # noqa: S608  # marks alone
            *partition,
            *values,
        )

    # In-flight batches

    def save_intents(self, intents: Iterable[BatchIntent]) -> None:
        """Store on disk before any of them is sent."""
        with self._transaction():
            for each in intents:
                mapped = each.mapped
                self._execute(
                    "INSERT OR REPLACE INTO intents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    *(*each.partition, each.copied, mapped.count, each.source_next),
                    *(mapped.source_first, mapped.source_next, mapped.gaps, each.checksum),
                )

    def find_intents(self, partition: TopicPartition) -> dict[tuple[int, int], BatchIntent]:
        """Intents by (records copied before, record count). The target may have them or not.

        Intents of earlier runs stay until a later batch has arrived, because a request may be
        delayed.
        """
        rows = self._connection.execute(
            "SELECT copied, count, source_next, stretch_first, stretch_next, gaps, checksum "
            "FROM intents WHERE topic = ? AND number = ?",
            partition,
        )
        return {
            (copied, count): BatchIntent(
                partition=partition,
                copied=copied,
                source_next=source_next,
                mapped=MappedRange(
                    source_first=first,
                    source_next=after,
                    target=Offset(-1),
                    count=count,
                    gaps=gaps,
                ),
                checksum=checksum,
            )
            for copied, count, source_next, first, after, gaps, checksum in rows
        }

    def save_written(self, arrived: Iterable[tuple[BatchIntent, Offset]]) -> None:
        """The target has these batches at these offsets; in order within each partition."""
        with self._transaction():
            for intent, target in arrived:
                self._save_written(intent, target)

    def _save_written(self, intent: BatchIntent, target: Offset) -> None:
        partition = intent.partition
        before = self.get_partition(partition)
        assert before.copied == intent.copied, f"{partition}: batches are written in order"
        part = intent.mapped
        mapped = MappedRange(
            source_first=part.source_first,
            source_next=part.source_next,
            target=target,
            count=part.count,
            gaps=part.gaps,
        )
        last = self.find_range(partition, mapped.source_first)
        joined = None if last is None else offset_map.join(last, mapped)
        self._save_range(partition, joined or mapped)
        self._save_partition(
            partition,
            PartitionCheckpoint(
                source_next=intent.source_next,
                target_next=mapped.target_next,
                copied=before.copied + mapped.count,
                checksum=intent.checksum,
                verified=before.verified,
                verified_checksum=before.verified_checksum,
                verified_next=before.verified_next,
            ),
        )
        self._execute(
            "DELETE FROM intents WHERE topic = ? AND number = ? AND copied <= ?",
            *(*partition, intent.copied),
        )

    # Offset map

    def find_range(self, partition: TopicPartition, before: Offset) -> MappedRange | None:
        """The last range that starts before this source offset."""
        return self._find_range(partition, "source_first < ? ORDER BY source_first DESC", before)

    def translate(self, partition: TopicPartition, offset: Offset) -> Offset:
        """The target offset at which a reader of this source offset continues."""
        before = self.find_range(partition, offset)
        if before is not None:
            return offset_map.translate(before, offset)
        first = self._find_range(partition, "source_first >= ? ORDER BY source_first", offset)
        return self.get_partition(partition).target_next if first is None else first.target

    def _find_range(
        self, partition: TopicPartition, which: str, offset: Offset
    ) -> MappedRange | None:
        row = self._row(
            "SELECT source_first, source_next, target, count, gaps FROM stretches "  # noqa: S608
            f"WHERE topic = ? AND number = ? AND {which} LIMIT 1",
            *(*partition, offset),
        )
        if row is None:
            return None
        names = ("source_first", "source_next", "target", "count", "gaps")
        return MappedRange(**dict(zip(names, row, strict=True)))

    def _save_range(self, partition: TopicPartition, saved: MappedRange) -> None:
        self._execute(
            "INSERT OR REPLACE INTO stretches VALUES (?, ?, ?, ?, ?, ?, ?)",
            *(*partition, saved.source_first, saved.source_next),
            *(saved.target, saved.count, saved.gaps),
        )

    # Groups

    def moved_offsets(self, group_id: GroupId) -> dict[TopicPartition, Offset]:
        """The offsets that earlier runs committed in the target."""
        rows = self._connection.execute(
            "SELECT topic, number, target FROM offsets WHERE group_id = ?", (group_id,)
        )
        return {
            TopicPartition(Topic(topic), Partition(number)): Offset(target)
            for topic, number, target in rows
        }

    def save_moved_offsets(
        self, group_id: GroupId, offsets: Mapping[TopicPartition, Offset]
    ) -> None:
        with self._transaction():
            for partition, target in offsets.items():
                self._execute(
                    "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?, ?)",
                    *(group_id, *partition, target),
                )

    # SQL

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """A transaction, durable at its end."""
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    def _execute(self, statement: str, *given: Any) -> None:
        self._connection.execute(statement, given)

    def _row(self, statement: str, *given: Any) -> Any:
        return self._connection.execute(statement, given).fetchone()


_PARTITION_FIELDS: Final = (
    *("source_next", "target_next", "copied", "checksum"),
    *("verified", "verified_checksum", "verified_next"),
)


@contextmanager
def open_state(path: Path | None) -> Iterator[MigrationState]:
    """Open the state file exclusively; create it if it does not exist.

    Without a path the state is in memory only, for dry runs.
    """
    where = ":memory:" if path is None else str(path)
    try:
        connection = sqlite3.connect(where, timeout=_BUSY_S, isolation_level=None)
    except sqlite3.Error as error:
        raise InvalidRequest(f"cannot open {where}: {error}") from None
    try:
        _prepare(connection, where)
        yield MigrationState(connection)
    finally:
        connection.close()


def _prepare(connection: sqlite3.Connection, where: str) -> None:
    try:
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("BEGIN EXCLUSIVE")
        names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
        if not names:
            for statement in _TABLES.strip().split(";\n"):
                connection.execute(statement)
            connection.execute("INSERT INTO facts VALUES ('format', ?)", (_FORMAT,))
        is_ours = not names or "facts" in names
        found = (
            connection.execute("SELECT content FROM facts WHERE name = 'format'").fetchone()
            if is_ours
            else None
        )
        connection.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise InvalidRequest(f"{where} is in use by another migration") from None
        raise InvalidRequest(f"cannot use {where}: {error}") from None
    except sqlite3.DatabaseError as error:
        raise InvalidRequest(f"{where} is not a migration state file: {error}") from None
    if found != (_FORMAT,):
        raise InvalidRequest(f"{where} is not a migration state file of this version of Kohort")
