"""The readers that Spark calls, for streams and for batch queries.

Spark calls `latestOffset(start)` only after its commit log has the batch that ends at `start`. Only
then does the stream commit `start` to the group, so the group never leads the checkpoint. After
that, a rebalance may revoke partitions, and the next batch is planned. All of this happens in one
process beside Spark's driver; copies of the reader, without its state, read ranges in executors.
"""

import contextlib
import logging
import signal
import threading
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from kohort.client.consumer import Consumer
from kohort.pipeline.source.broker_check import check_reachable
from kohort.pipeline.source.options import (
    MembershipMode,
    OffsetKind,
    Reset,
    SourceOptions,
    consumer_config,
    offsets_to_json,
)
from kohort.pipeline.source.planner import (
    NO_OFFSET,
    OffsetRange,
    StreamOffset,
    clamp_positions,
    plan_batch,
    report_losses,
    resume_positions,
    split_ranges,
)
from kohort.pipeline.source.read_task import read_range, to_partitions
from kohort.pipeline.source.stream_member import (
    AssignedPartitions,
    StreamMember,
    find_bounds,
    find_offsets,
    find_partitions,
    reset_offsets,
)
from kohort.types import Offset, TopicPartition

_LOGGER: Final = logging.getLogger("kohort.pipeline")


class KohortBatchReader(DataSourceReader):
    """Commits nothing: Spark does not report to the source whether a batch query succeeded."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        options = self._options
        check_reachable(options)
        config = consumer_config(options)
        if options.group_id is not None:
            config |= {"group.id": options.group_id, "enable.auto.commit": False}
        with contextlib.closing(Consumer(config)) as consumer:
            ranges = _plan_ranges(consumer, options)
        return to_partitions(split_ranges(ranges, options.partitions_min))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(partition, self._options)


def _plan_ranges(consumer: Consumer, options: SourceOptions) -> list[OffsetRange]:
    partitions = find_partitions(consumer, options)
    beginnings, ends = find_bounds(consumer, partitions)
    starts = find_offsets(consumer, options.starting, partitions, options.reset)
    stops = find_offsets(consumer, options.ending, partitions, Reset.LATEST)
    starts, losses = clamp_positions(starts, beginnings, ends)
    report_losses(losses, fail=options.fail_on_data_loss, warn=_LOGGER.warning)
    return [
        OffsetRange(
            partition=each,
            first=starts[each],
            stop=max(starts[each], min(stops[each], ends[each])),
        )
        for each in sorted(partitions)
    ]


class KohortStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions) -> None:
        """Spark calls this in several processes, so it does not join the group."""
        self._options = options
        self._stream: _Stream | None = None
        self._is_available_now = False
        self._is_busy = False
        self._is_stopping = False
        self._former_handler: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Spark sends the reader to executors without its group membership."""
        return {"_options": self._options}

    # Called beside Spark's driver

    def initialOffset(self) -> dict[str, Any]:
        """Empty: the first offset that has a partition records where it begins."""
        return NO_OFFSET.write()

    def getDefaultReadLimit(self) -> ReadLimit:
        rows_max = self._options.rows_max
        return ReadAllAvailable() if rows_max is None else ReadMaxRows(rows_max)

    def prepareForTriggerAvailableNow(self) -> None:
        self._is_available_now = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        rows_max = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        before = StreamOffset.read(start)
        with self._busy_stream() as stream:
            after = stream.advance(before, rows_max)
        # Spark compares offsets as text: an equal offset written differently would be a new batch.
        return start if after is before else after.write()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """From the two offsets alone: after a crash Spark plans an unfinished batch again."""
        with self._busy_stream() as stream:
            stream.join()
        ranges = StreamOffset.read(end).ranges_since(StreamOffset.read(start))
        return to_partitions(split_ranges(ranges, self._options.partitions_min))

    def commit(self, end: dict[str, Any]) -> None:
        with self._busy_stream() as stream:
            stream.commit(StreamOffset.read(end))

    def reportLatestOffset(self) -> dict[str, Any] | None:
        if self._stream is None:
            return None
        with self._busy_stream() as stream:
            return stream.report()

    def stop(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()
            if self._former_handler is not None:
                signal.signal(signal.SIGTERM, self._former_handler)

    # Called in executors

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_range(partition, self._options)

    # Start and stop

    @contextlib.contextmanager
    def _busy_stream(self) -> Iterator["_Stream"]:
        if self._stream is None:
            self._handle_sigterm()
            member = StreamMember(self._options, lambda: self._is_stopping)
            self._stream = _Stream(self._options, member, is_available_now=self._is_available_now)
        self._is_busy = True
        try:
            yield self._stream
        finally:
            self._is_busy = False
            if self._is_stopping:
                raise SystemExit(0)

    def _handle_sigterm(self) -> None:
        """Spark sends SIGTERM to this process when a query stops; the member must leave first."""
        if threading.current_thread() is threading.main_thread():
            self._former_handler = signal.signal(signal.SIGTERM, self._on_terminate)

    def _on_terminate(self, _number: int, _frame: object) -> None:
        """Finish the current call first. Spark's runner then calls `stop`.

        Spark may send the signal twice within milliseconds: the second must not interrupt leaving.
        """
        if self._is_stopping:
            return
        self._is_stopping = True
        if not self._is_busy:
            raise SystemExit(0)


class _Stream:
    """One running stream: its membership, its position, and the group's committed offsets."""

    def __init__(
        self, options: SourceOptions, member: StreamMember, *, is_available_now: bool
    ) -> None:
        self._options = options
        self._member = member
        self._is_available_now = is_available_now
        self._resumed: dict[TopicPartition, Offset] = {}
        """Positions of assigned partitions that are not yet in one of Spark's offsets."""
        self._final_ends: dict[TopicPartition, Offset] = {}
        """Where an availableNow run ends: the log ends when it first saw each partition."""
        self._ends: dict[TopicPartition, Offset] = {}
        self._position: StreamOffset | None = None
        self._initial: frozenset[TopicPartition] | None = None
        """All partitions when a new query began; None in a query that resumes a checkpoint."""
        self._read_by_others: list[OffsetRange] = []

    def join(self) -> None:
        """Join the group while an unfinished batch runs again; `advance` uses the assignment."""
        if self._position is None:
            self._member.poll_assignment(waits_for_join=False)

    def commit(self, durable: StreamOffset) -> None:
        """Spark's commit log has the batch that ends at this offset."""
        self._member.commit(durable.positions)

    def advance(self, start: StreamOffset, rows_max: int | None) -> StreamOffset:
        """Commit what is durable, let the group rebalance, plan the next batch: in this order."""
        self.commit(start)
        assignment = self._member.poll_assignment(waits_for_join=self._is_available_now)
        if assignment is None:
            return start
        self._resume(assignment, start)
        # For newly assigned partitions the checkpoint may be ahead of the group.
        self._member.commit(
            {each: at for each, at in start.positions.items() if self._resumed.get(each, at) == at}
        )
        positions = {
            each: self._resumed.get(each, start.positions.get(each, Offset(0)))
            for each in assignment.partitions
        }
        positions, ends = self._check_bounds(positions)
        self._position = plan_batch(start, positions, ends, rows_max)
        return self._position

    def _resume(self, assignment: AssignedPartitions, start: StreamOffset) -> None:
        """Find the positions of newly assigned partitions."""
        is_new = self._position is None and not start.positions
        if is_new and self._initial is None:
            self._initial = find_partitions(self._member.consumer, self._options)
        partitions, fresh = assignment.partitions, assignment.fresh
        self._resumed = {
            each: at
            for each, at in self._resumed.items()
            if each in partitions and each not in fresh and each not in start.positions
        }
        fresh |= partitions - self._resumed.keys() - start.positions.keys()
        if not fresh:
            return
        committed = self._member.fetch_committed(fresh)
        if is_new and self._options.starting.kind is not OffsetKind.COMMITTED:
            committed = {}
        resumed, self._read_by_others = resume_positions(
            fresh,
            start.positions,
            committed,
            is_shared=self._options.membership is MembershipMode.GROUP,
        )
        self._log_skipped()
        self._resumed |= resumed | self._find_starts(fresh - resumed.keys(), is_new=is_new)

    def _log_skipped(self) -> None:
        for each in self._read_by_others:
            _LOGGER.warning(
                "offsets %d to %d of %s-%d are skipped: another member of the group has read them",
                each.first,
                each.stop - 1,
                *each.partition,
            )

    def _find_starts(
        self, unseen: Collection[TopicPartition], *, is_new: bool
    ) -> dict[TopicPartition, Offset]:
        """Where to start partitions that neither the checkpoint nor the group knows."""
        consumer, options = self._member.consumer, self._options
        if is_new and options.starting.kind is not OffsetKind.COMMITTED:
            return find_offsets(consumer, options.starting, unseen, options.reset)
        # A partition that was added later is read from its beginning, as Spark's own source does.
        known = unseen if is_new else self._initial or frozenset()
        old = [each for each in unseen if each in known]
        added = [each for each in unseen if each not in known]
        starts = reset_offsets(consumer, old, options.reset)
        return starts | reset_offsets(consumer, added, Reset.EARLIEST)

    def _check_bounds(
        self, positions: dict[TopicPartition, Offset]
    ) -> tuple[dict[TopicPartition, Offset], dict[TopicPartition, Offset]]:
        """Positions within the logs, and where the batch may end."""
        beginnings, self._ends = find_bounds(self._member.consumer, positions)
        clamped, losses = clamp_positions(positions, beginnings, self._ends)
        report_losses(losses, fail=self._options.fail_on_data_loss, warn=_LOGGER.warning)
        if not self._is_available_now:
            return clamped, self._ends
        self._final_ends = self._ends | self._final_ends
        return clamped, {each: min(at, self._final_ends[each]) for each, at in self._ends.items()}

    def report(self) -> dict[str, Any]:
        """For the query's progress: log ends, lag, and the state of the group."""
        positions = self._position.positions if self._position is not None else {}
        lag = {
            each: max(0, end - positions[each])
            for each, end in self._ends.items()
            if each in positions
        }
        report: dict[str, Any] = {**offsets_to_json(self._ends), "$lag": offsets_to_json(lag)}
        group = self._member.describe()
        if group:
            committed = {
                each: at for each, at in self._member.committed.items() if each in positions
            }
            behind = {each: max(0, positions[each] - at) for each, at in committed.items()}
            report["$group"] = group | {
                "committed": offsets_to_json(committed),
                "behind": offsets_to_json(behind),
            }
        if self._read_by_others:
            report["$read_by_others"] = {
                f"{each.partition.topic}-{each.partition.partition}": [each.first, each.stop]
                for each in self._read_by_others
            }
        return report

    def close(self) -> None:
        self._member.close()
