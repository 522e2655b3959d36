"""One running stream beside Spark's driver: what it holds, where it is, how far the group is."""

import logging
from collections.abc import Collection
from typing import Any, Final

from kohort.client.topic_partition import TopicPartition
from kohort.pipeline.source.cutting import Loss, cut, mend, refuse_loss, settle_claims
from kohort.pipeline.source.holding import Held, Holding
from kohort.pipeline.source.options import Membership, Reset, SourceOptions, Where, Word
from kohort.pipeline.source.places import find_partitions, find_places, find_unseen
from kohort.pipeline.source.stream_offset import StreamOffset, nest
from kohort.types import Offset

_LOGGER: Final = logging.getLogger("kohort.pipeline")


class Driver:
    def __init__(self, options: SourceOptions, holding: Holding, *, is_available_now: bool) -> None:
        self._options = options
        self._holding = holding
        self._is_available_now = is_available_now
        self._claims: dict[TopicPartition, Offset] = {}
        """Where to go on with what has come, until an offset of Spark's has it."""
        self._pinned: dict[TopicPartition, Offset] = {}
        """Where a run ends that reads what is there now."""
        self._ends: dict[TopicPartition, Offset] = {}
        self._position: StreamOffset | None = None
        self._at_first: frozenset[TopicPartition] | None = None
        """All partitions when a new query began; None in a query that goes on."""
        self._skipped: list[Loss] = []

    def join(self) -> None:
        """Be a member while an unfinished batch runs again; what it holds is looked at later."""
        if self._position is None:
            self._holding.settle(is_patient=False)

    def commit(self, durable: StreamOffset) -> None:
        """Spark's commit log has the batch that ended there."""
        self._holding.commit(durable.positions)

    def advance(self, start: StreamOffset, rows_max: int | None) -> StreamOffset:
        """The group hears of what is durable; what is held may change; a batch is cut."""
        self.commit(start)
        held = self._holding.settle(is_patient=self._is_available_now)
        if held is None:
            return start
        self._claim(held, start)
        self._catch_up(start)
        standing = {
            each: self._claims.get(each, start.positions.get(each, Offset(0)))
            for each in held.partitions
        }
        standing, ends = self._look_at_logs(standing)
        after = cut(start, standing, ends, rows_max)
        self._position = after
        return after

    def _catch_up(self, start: StreamOffset) -> None:
        """Of what has just come, the checkpoint may know more than the group; never less."""
        self._holding.commit(
            {each: at for each, at in start.positions.items() if self._claims.get(each, at) == at}
        )

    def _claim(self, held: Held, start: StreamOffset) -> None:
        """Find out where to go on with what has come."""
        is_new = self._position is None and not start.positions
        if is_new and self._at_first is None:
            self._at_first = find_partitions(self._holding.consumer, self._options)
        # What an offset of Spark's has by now, and what is gone, needs no claim any more.
        self._claims = {
            each: at
            for each, at in self._claims.items()
            if each in held.partitions and each not in held.fresh and each not in start.positions
        }
        fresh = held.fresh | (held.partitions - self._claims.keys() - start.positions.keys())
        if fresh:
            committed = self._holding.find_committed(fresh)
            if is_new and self._options.starting.word is not Word.COMMITTED:
                committed = {}
            claims, skipped = settle_claims(
                fresh,
                start.positions,
                committed,
                is_shared=self._options.membership is Membership.GROUP,
            )
            self._note_skipped(skipped)
            unseen = fresh - claims.keys()
            self._claims |= claims | self._find_starts(unseen, is_new=is_new)

    def _find_starts(
        self, unseen: Collection[TopicPartition], *, is_new: bool
    ) -> dict[TopicPartition, Offset]:
        """Where to begin what neither the checkpoint nor the group knows."""
        consumer, options = self._holding.consumer, self._options
        if is_new:
            starting = options.starting
            if starting.word is Word.COMMITTED:
                return find_unseen(consumer, unseen, options.reset)
            return find_places(consumer, starting, unseen, options.reset)
        # A partition that was added later is read from its beginning, as Spark's own source does.
        known = self._at_first or frozenset()
        old = [each for each in unseen if each in known]
        new = [each for each in unseen if each not in known]
        return find_unseen(consumer, old, options.reset) | find_unseen(
            consumer, new, Reset.EARLIEST
        )

    def _look_at_logs(
        self, standing: dict[TopicPartition, Offset]
    ) -> tuple[dict[TopicPartition, Offset], dict[TopicPartition, Offset]]:
        """Positions that can be read from, and where the batch may end."""
        if not standing:
            self._ends = {}
            return {}, {}
        consumer = self._holding.consumer
        beginnings = find_places(consumer, Where(word=Word.EARLIEST), standing, Reset.EARLIEST)
        self._ends = ends = find_places(consumer, Where(word=Word.LATEST), standing, Reset.LATEST)
        mended, losses = mend(standing, beginnings, ends)
        refuse_loss(losses, fail=self._options.fail_on_data_loss, warn=_LOGGER.warning)
        if not self._is_available_now:
            return mended, ends
        for each, end in ends.items():
            self._pinned.setdefault(each, end)
        return mended, {each: min(end, self._pinned[each]) for each, end in ends.items()}

    def _note_skipped(self, skipped: list[Loss]) -> None:
        self._skipped = skipped
        for each in skipped:
            topic, number = each.partition
            _LOGGER.warning(
                "offsets %d to %d of %s-%d are left out: another member of the group has read them",
                each.first,
                each.stop - 1,
                topic,
                number,
            )

    def report(self) -> dict[str, Any]:
        """For the query's progress: where the logs end, how far behind, how the group stands."""
        positions = self._position.positions if self._position is not None else {}
        lag = {
            each: max(0, end - positions[each])
            for each, end in self._ends.items()
            if each in positions
        }
        report: dict[str, Any] = {**nest(self._ends), "$lag": nest(lag)}
        group = self._holding.describe()
        if group:
            kept = {each: at for each, at in self._holding.kept.items() if each in positions}
            behind = {each: max(0, positions[each] - at) for each, at in kept.items()}
            report["$group"] = group | {"committed": nest(kept), "behind": nest(behind)}
        if self._skipped:
            report["$read_by_others"] = {
                f"{each.partition.topic}-{each.partition.partition}": [each.first, each.stop]
                for each in self._skipped
            }
        return report

    def close(self) -> None:
        self._holding.close()
