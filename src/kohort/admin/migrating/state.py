"""What a migration remembers, in one file that survives any kill: an SQLite database.

Before records are sent, what is about to be sent is written down; when B has them, where they went.
So another run knows which of B's batches are whose, whatever happened in between.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from kohort.admin.errors import WrongWish
from kohort.admin.migrating import mapping
from kohort.admin.migrating.mapping import Stretch
from kohort.client.topic_partition import TopicPartition
from kohort.types import GroupId, Offset, Partition, ProducerEpoch, ProducerId, Topic, Uuid, value

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
class TopicState:
    source_id: Uuid
    target_id: Uuid
    after_copy: dict[str, str | None]
    """The settings that B's topic has once all is copied; None: none of its own."""
    is_held: bool
    """Whether B keeps everything meanwhile, so that it can be compared."""


@value
class PartitionState:
    source_next: Offset
    """Where A is read on from."""
    target_next: Offset
    """After what is known to be in B."""
    copied: int
    checksum: int
    verified: int
    verified_checksum: int
    verified_next: Offset
    """Where B is read on from to compare the rest."""


@value
class Intent:
    """A batch that is about to be sent: what will be so once B has it."""

    partition: TopicPartition
    copied: int
    """Records that come before it."""
    source_next: Offset
    stretch: Stretch
    """Its target is not known yet."""
    checksum: int


class State:
    """Opened by `open_state`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    # The two clusters, and the producer that writes

    def find_fact(self, name: str) -> str | None:
        row = self._row("SELECT content FROM facts WHERE name = ?", name)
        return None if row is None else str(row[0])

    def remember_fact(self, name: str, content: str) -> None:
        with self._change():
            self._do("INSERT OR REPLACE INTO facts VALUES (?, ?)", name, content)

    def find_producer(self) -> tuple[ProducerId, ProducerEpoch] | None:
        told = self.find_fact("producer")
        if told is None:
            return None
        producer_id, epoch = json.loads(told)
        return ProducerId(producer_id), ProducerEpoch(epoch)

    def remember_producer(self, producer_id: ProducerId, epoch: ProducerEpoch) -> None:
        self.remember_fact("producer", json.dumps([producer_id, epoch]))

    # Topics

    def find_topic(self, topic: Topic) -> TopicState | None:
        found = self._row(
            "SELECT source_id, target_id, after_copy, is_held FROM topics WHERE topic = ?", topic
        )
        if found is None:
            return None
        source_id, target_id, after_copy, is_held = found
        return TopicState(
            source_id=Uuid(source_id),
            target_id=Uuid(target_id),
            after_copy=json.loads(after_copy),
            is_held=bool(is_held),
        )

    def remember_topic(self, topic: Topic, told: TopicState) -> None:
        with self._change():
            self._do(
                "INSERT OR REPLACE INTO topics VALUES (?, ?, ?, ?, ?)",
                *(topic, told.source_id, told.target_id),
                *(json.dumps(told.after_copy), told.is_held),
            )

    # Partitions

    def find_partition(self, partition: TopicPartition) -> PartitionState | None:
        names = ", ".join(_PARTITION_FIELDS)
        row = self._row(
            f"SELECT {names} FROM partitions WHERE topic = ? AND number = ?",  # noqa: S608  # ours
            *partition,
        )
        if row is None:
            return None
        return PartitionState(**dict(zip(_PARTITION_FIELDS, row, strict=True)))

    def get_partition(self, partition: TopicPartition) -> PartitionState:
        found = self.find_partition(partition)
        assert found is not None, f"{partition} was begun"
        return found

    def begin_partition(
        self, partition: TopicPartition, source: Offset, target: Offset
    ) -> PartitionState:
        begun = PartitionState(
            source_next=source,
            target_next=target,
            copied=0,
            checksum=0,
            verified=0,
            verified_checksum=0,
            verified_next=target,
        )
        with self._change():
            self._write_partition(partition, begun)
        return begun

    def remember_verified(self, partition: TopicPartition) -> None:
        """All that was copied so far has been found in B."""
        with self._change():
            self._do(
                "UPDATE partitions SET verified = copied, verified_checksum = checksum, "
                "verified_next = target_next WHERE topic = ? AND number = ?",
                *partition,
            )

    def remember_read(self, partition: TopicPartition, source_next: Offset) -> None:
        """A was looked at up to there, and there was nothing more to copy."""
        with self._change():
            self._do(
                "UPDATE partitions SET source_next = max(source_next, ?) "
                "WHERE topic = ? AND number = ?",
                *(source_next, *partition),
            )

    def _write_partition(self, partition: TopicPartition, told: PartitionState) -> None:
        values = [getattr(told, name) for name in _PARTITION_FIELDS]
        marks = ", ".join("?" * (2 + len(values)))
        self._do(
            f"INSERT OR REPLACE INTO partitions VALUES ({marks})",  # noqa: S608  # marks alone
            *partition,
            *values,
        )

    # Batches on their way

    def intend(self, intents: Iterable[Intent]) -> None:
        """On disk before any of them is sent."""
        with self._change():
            for each in intents:
                stretch = each.stretch
                self._do(
                    "INSERT OR REPLACE INTO intents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    *(*each.partition, each.copied, stretch.count, each.source_next),
                    *(stretch.source_first, stretch.source_next, stretch.gaps, each.checksum),
                )

    def intents(self, partition: TopicPartition) -> dict[tuple[int, int], Intent]:
        """What was about to be sent, by how many records come before it and how many it has.

        B may have it or not. Those of an earlier run are there too, until something that comes
        behind them has arrived: a batch may be long on its way.
        """
        rows = self._connection.execute(
            "SELECT copied, count, source_next, stretch_first, stretch_next, gaps, checksum "
            "FROM intents WHERE topic = ? AND number = ?",
            partition,
        )
        return {
            (copied, count): Intent(
                partition=partition,
                copied=copied,
                source_next=source_next,
                stretch=Stretch(
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

    def settle(self, arrived: Iterable[tuple[Intent, Offset]]) -> None:
        """B has these, from these offsets on; each partition's in their order."""
        with self._change():
            for intent, target in arrived:
                self._settle(intent, target)

    def _settle(self, intent: Intent, target: Offset) -> None:
        partition = intent.partition
        before = self.get_partition(partition)
        assert before.copied == intent.copied, f"{partition}: batches arrive in order"
        part = intent.stretch
        stretch = Stretch(
            source_first=part.source_first,
            source_next=part.source_next,
            target=target,
            count=part.count,
            gaps=part.gaps,
        )
        last = self.find_stretch(partition, stretch.source_first)
        joined = None if last is None else mapping.join(last, stretch)
        self._write_stretch(partition, joined or stretch)
        self._write_partition(
            partition,
            PartitionState(
                source_next=intent.source_next,
                target_next=stretch.target_next,
                copied=before.copied + stretch.count,
                checksum=intent.checksum,
                verified=before.verified,
                verified_checksum=before.verified_checksum,
                verified_next=before.verified_next,
            ),
        )
        self._do(
            "DELETE FROM intents WHERE topic = ? AND number = ? AND copied <= ?",
            *(*partition, intent.copied),
        )

    # Where records went

    def find_stretch(self, partition: TopicPartition, before: Offset) -> Stretch | None:
        """The last one that begins before this offset of A."""
        return self._stretch(partition, "source_first < ? ORDER BY source_first DESC", before)

    def translate(self, partition: TopicPartition, offset: Offset) -> Offset:
        """What a reader at this offset of A reads next in B."""
        before = self.find_stretch(partition, offset)
        if before is not None:
            return mapping.translate(before, offset)
        first = self._stretch(partition, "source_first >= ? ORDER BY source_first", offset)
        return self.get_partition(partition).target_next if first is None else first.target

    def _stretch(self, partition: TopicPartition, which: str, offset: Offset) -> Stretch | None:
        row = self._row(
            "SELECT source_first, source_next, target, count, gaps FROM stretches "  # noqa: S608
            f"WHERE topic = ? AND number = ? AND {which} LIMIT 1",
            *(*partition, offset),
        )
        if row is None:
            return None
        names = ("source_first", "source_next", "target", "count", "gaps")
        return Stretch(**dict(zip(names, row, strict=True)))

    def _write_stretch(self, partition: TopicPartition, told: Stretch) -> None:
        self._do(
            "INSERT OR REPLACE INTO stretches VALUES (?, ?, ?, ?, ?, ?, ?)",
            *(*partition, told.source_first, told.source_next),
            *(told.target, told.count, told.gaps),
        )

    # Groups

    def moved_offsets(self, group_id: GroupId) -> dict[TopicPartition, Offset]:
        """What earlier runs committed in B."""
        rows = self._connection.execute(
            "SELECT topic, number, target FROM offsets WHERE group_id = ?", (group_id,)
        )
        return {
            TopicPartition(Topic(topic), Partition(number)): Offset(target)
            for topic, number, target in rows
        }

    def remember_moved(self, group_id: GroupId, offsets: Mapping[TopicPartition, Offset]) -> None:
        with self._change():
            for partition, target in offsets.items():
                self._do(
                    "INSERT OR REPLACE INTO offsets VALUES (?, ?, ?, ?)",
                    *(group_id, *partition, target),
                )

    # How it is kept

    @contextmanager
    def _change(self) -> Iterator[None]:
        """All of it or nothing; on disk when it is over."""
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    def _do(self, statement: str, *given: Any) -> None:
        self._connection.execute(statement, given)

    def _row(self, statement: str, *given: Any) -> Any:
        return self._connection.execute(statement, given).fetchone()


_PARTITION_FIELDS: Final = (
    *("source_next", "target_next", "copied", "checksum"),
    *("verified", "verified_checksum", "verified_next"),
)


@contextmanager
def open_state(path: Path | None) -> Iterator[State]:
    """The state in this file, for nobody else meanwhile; a new one where there is none.

    Without a file it is forgotten again, for whoever only looks.
    """
    where = ":memory:" if path is None else str(path)
    try:
        connection = sqlite3.connect(where, timeout=_BUSY_S, isolation_level=None)
    except sqlite3.Error as error:
        raise WrongWish(f"{where} cannot be opened: {error}") from None
    try:
        _prepare(connection, where)
        yield State(connection)
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
            raise WrongWish(f"{where} is in use: another migration goes on") from None
        raise WrongWish(f"{where} cannot be used: {error}") from None
    except sqlite3.DatabaseError as error:
        raise WrongWish(f"{where} is not the state of a migration: {error}") from None
    if found != (_FORMAT,):
        raise WrongWish(f"{where} is not the state of a migration that this Kohort can go on with")
