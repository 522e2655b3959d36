"""The stream's consumer beside Spark's driver: group membership, assigned partitions, offsets.

It exists as long as the query. As a group member it sends heartbeats from the consumer's own
thread, however long a batch takes. It takes part in a rebalance only in `poll_assignment`, which
the reader calls between two batches, after it has committed the last one. The functions that look
up partitions and offsets serve batch queries, too.
"""

import logging
import re
import time
from collections.abc import Callable, Collection, Mapping
from typing import Final

from kohort.client.consumer import Consumer
from kohort.client.errors import CommitFailedError, ConsumerError
from kohort.client.rebalances import ConsumerRebalanceListener
from kohort.pipeline.errors import BadSourceOption, JoinTimeout, PipelineError, TopicNotFound
from kohort.pipeline.source.broker_check import check_reachable
from kohort.pipeline.source.options import (
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    MembershipMode,
    OffsetKind,
    OffsetSpec,
    Reset,
    SourceOptions,
    consumer_config,
)
from kohort.types import Offset, Partition, Topic, TopicPartition, value

_LOGGER: Final = logging.getLogger("kohort.pipeline")

_POLL_MS: Final = 100
"""How long one poll waits before it checks whether the query ends."""

_TRIGGER_WAIT_S: Final = 1.0
"""How long a trigger waits for a rebalance; the next trigger continues to wait."""

_REFRESH_S: Final = 5.0
"""How often a query without a group membership looks for new partitions."""

_BATCH_MAX_MS: Final = 3_600_000
"""How long the group waits for a batch to end before it removes the query."""

_SHOWN_MAX: Final = 5
"""Partitions in one error message."""

Offsets = dict[TopicPartition, Offset]


@value
class AssignedPartitions:
    """The partitions that the query may read, and those assigned since the last call."""

    partitions: frozenset[TopicPartition]
    fresh: frozenset[TopicPartition]


class StreamMember:
    """Created when a query first needs it. It stops waiting when `is_stopping` returns true."""

    def __init__(self, options: SourceOptions, is_stopping: Callable[[], bool]) -> None:
        check_reachable(options)
        self._group_id = options.group_id
        self.consumer = Consumer(_stream_config(options))
        self._partitions = (
            _GroupPartitions(self.consumer, options, is_stopping)
            if options.membership is MembershipMode.GROUP
            else _AllPartitions(self.consumer, options)
        )
        self.committed: Mapping[TopicPartition, Offset] = {}
        """The group's committed offsets as last read or written."""

    def poll_assignment(self, *, waits_for_join: bool) -> AssignedPartitions | None:
        """The partitions that the query may read; None during a rebalance.

        With `waits_for_join` it waits for the end of a rebalance, and raises JoinTimeout after
        joinTimeoutMs.
        """
        return self._partitions.poll(waits_for_join=waits_for_join)

    def commit(self, positions: Mapping[TopicPartition, Offset]) -> None:
        """Commit the positions of assigned partitions that differ from the committed offsets."""
        if self._group_id is None:
            return
        assigned = self._partitions.current
        changed = {
            each: offset
            for each, offset in positions.items()
            if each in assigned and self.committed.get(each) != offset
        }
        if not changed:
            return
        try:
            self.consumer.commit(changed)
        except ConsumerError as error:
            self._partitions.handle_commit_error(error)
        else:
            self.committed = {**self.committed, **changed}

    def fetch_committed(self, partitions: Collection[TopicPartition]) -> Offsets:
        """The group's committed offsets of the partitions that have one."""
        if self._group_id is None or not partitions:
            return {}
        found = _committed_offsets(self.consumer, partitions)
        others = {each: at for each, at in self.committed.items() if each not in partitions}
        self.committed = others | found
        return found

    def describe(self) -> dict[str, object]:
        """The state of the group for the query's progress; empty without a group."""
        return {} if self._group_id is None else self._partitions.describe()

    def close(self) -> None:
        """Leave the group, unless the member is static."""
        self.consumer.close()


def _stream_config(options: SourceOptions) -> dict[str, object]:
    own: dict[str, object] = {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
    if options.group_id is not None:
        own["group.id"] = options.group_id
    if options.membership is MembershipMode.GROUP:
        own["max.poll.interval.ms"] = _BATCH_MAX_MS
    config = own | consumer_config(options)
    if options.instance_id is not None:
        config["group.instance.id"] = options.instance_id
    return config


class _AllPartitions:
    """All partitions of the topics, whatever other members of the group read."""

    def __init__(self, consumer: Consumer, options: SourceOptions) -> None:
        self._consumer = consumer
        self._options = options
        self.current: frozenset[TopicPartition] = frozenset()
        self._refresh_at = 0.0

    def poll(self, *, waits_for_join: bool) -> AssignedPartitions:
        before = self.current
        if time.monotonic() >= self._refresh_at or waits_for_join:
            self.current = find_partitions(self._consumer, self._options)
            self._refresh_at = time.monotonic() + _REFRESH_S
        return AssignedPartitions(partitions=self.current, fresh=self.current - before)

    def handle_commit_error(self, error: ConsumerError) -> None:
        if isinstance(error, CommitFailedError):
            raise PipelineError(
                f"group {self._options.group_id!r} has members, so a query with membership=none "
                "cannot commit to it: use another group.id, or membership=group"
            ) from error
        _LOGGER.warning("commit postponed: %s", error)

    def describe(self) -> dict[str, object]:
        return {"id": self._options.group_id, "membership": MembershipMode.NONE.value}


class _PausingListener(ConsumerRebalanceListener):
    """Pauses assigned partitions: tasks read them, not this consumer."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.fresh: set[TopicPartition] = set()

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._consumer.pause(*partitions)
        self.fresh |= set(partitions)

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.fresh -= set(partitions)


class _GroupPartitions:
    """The partitions that the group assigns to the query."""

    def __init__(
        self, consumer: Consumer, options: SourceOptions, is_stopping: Callable[[], bool]
    ) -> None:
        self._consumer = consumer
        self._options = options
        self._is_stopping = is_stopping
        self._check_topics()
        self._listener = _PausingListener(consumer)
        if options.pattern is None:
            consumer.subscribe(options.topics, listener=self._listener)
        else:
            consumer.subscribe(pattern=options.pattern, listener=self._listener)

    def _check_topics(self) -> None:
        """A consumer waits until its topics exist; a query with a misspelt topic must fail."""
        if self._options.pattern is not None:
            if not _find_matches(self._consumer, self._options.pattern):
                _LOGGER.warning("no topic matches the pattern yet; the query waits for one")
            return
        missing = set(self._options.topics) - self._consumer.topics()
        missing = {each for each in missing if not self._consumer.partitions_for_topic(each)}
        if missing:
            raise _missing_topic(", ".join(sorted(missing)))

    @property
    def current(self) -> frozenset[TopicPartition]:
        return self._consumer.assignment()

    def poll(self, *, waits_for_join: bool) -> AssignedPartitions | None:
        seconds = self._options.join_timeout_ms / 1000 if waits_for_join else _TRIGGER_WAIT_S
        end = time.monotonic() + seconds
        self._consumer.poll(0)
        while not self._consumer.group_metadata().is_stable:
            if self._is_stopping():
                return None
            if time.monotonic() >= end:
                if waits_for_join:
                    raise self._not_joined(seconds)
                return None
            self._consumer.poll(_POLL_MS)
        fresh = frozenset(self._listener.fresh)
        self._listener.fresh.clear()
        return AssignedPartitions(partitions=self._consumer.assignment(), fresh=fresh)

    def _not_joined(self, seconds: float) -> JoinTimeout:
        state = self._consumer.group_metadata().state
        return JoinTimeout(
            f"group {self._options.group_id!r} assigned nothing to the query within "
            f"{seconds:.0f} s (member state: {state}): another member may be too busy to rejoin; "
            "a larger joinTimeoutMs waits longer"
        )

    def handle_commit_error(self, error: ConsumerError) -> None:
        """The next owner of the partition reads the records again: the group may lag, not lead."""
        _LOGGER.warning("commit failed: %s", error)

    def describe(self) -> dict[str, object]:
        metadata = self._consumer.group_metadata()
        return {
            "id": metadata.group_id,
            "membership": MembershipMode.GROUP.value,
            "state": metadata.state.value,
            "generation": int(metadata.generation_id),
            "member_id": str(metadata.member_id),
        }


def find_partitions(consumer: Consumer, options: SourceOptions) -> frozenset[TopicPartition]:
    """All partitions that the query may read, as the brokers have them now."""
    if options.assigned:
        by_topic = {topic: consumer.partitions_for_topic(topic) for topic, _ in options.assigned}
        missing = [each for each in options.assigned if each.partition not in by_topic[each.topic]]
        if missing:
            raise TopicNotFound(f"{_shown(missing)} does not exist")
        return frozenset(options.assigned)
    topics = options.topics
    if options.pattern is not None:
        topics = _find_matches(consumer, options.pattern)
    return frozenset(
        TopicPartition(topic, number)
        for topic in topics
        for number in _partition_numbers(consumer, topic)
    )


def _partition_numbers(consumer: Consumer, topic: Topic) -> frozenset[Partition]:
    numbers = consumer.partitions_for_topic(topic)
    if not numbers:
        raise _missing_topic(repr(topic))
    return numbers


def _missing_topic(names: str) -> TopicNotFound:
    return TopicNotFound(f"topic {names} does not exist: create it, or correct its name")


def _find_matches(consumer: Consumer, pattern: str) -> tuple[Topic, ...]:
    return tuple(sorted(name for name in consumer.topics() if re.match(pattern, name)))


def find_bounds(
    consumer: Consumer, partitions: Collection[TopicPartition]
) -> tuple[Offsets, Offsets]:
    """The log start and the log end of each partition."""
    if not partitions:
        return {}, {}
    return consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)


def find_offsets(
    consumer: Consumer, spec: OffsetSpec, partitions: Collection[TopicPartition], reset: Reset
) -> Offsets:
    """The offset of each partition; `reset` is for those without a committed offset."""
    if not partitions:
        return {}
    match spec.kind:
        case OffsetKind.EARLIEST:
            return consumer.beginning_offsets(partitions)
        case OffsetKind.LATEST:
            return consumer.end_offsets(partitions)
        case OffsetKind.COMMITTED:
            offsets = _committed_offsets(consumer, partitions)
            missing = [each for each in partitions if each not in offsets]
            return offsets | reset_offsets(consumer, missing, reset)
        case OffsetKind.OFFSETS:
            return _given_offsets(consumer, spec, partitions)
        case OffsetKind.TIMES:
            return _offsets_for_times(consumer, spec, partitions)


def _committed_offsets(consumer: Consumer, partitions: Collection[TopicPartition]) -> Offsets:
    found = consumer.committed(partitions)
    return {each: at.offset for each, at in found.items() if at is not None}


def reset_offsets(
    consumer: Consumer, partitions: Collection[TopicPartition], reset: Reset
) -> Offsets:
    """Where to start partitions without a committed offset."""
    if not partitions:
        return {}
    if reset is Reset.NONE:
        raise BadSourceOption(
            f"the group has no committed offset for {_shown(partitions)}, and auto.offset.reset is "
            "none: set it to earliest or latest, or give startingOffsets"
        )
    is_early = reset is Reset.EARLIEST
    return (consumer.beginning_offsets if is_early else consumer.end_offsets)(partitions)


def _given_offsets(
    consumer: Consumer, spec: OffsetSpec, partitions: Collection[TopicPartition]
) -> Offsets:
    missing = [each for each in partitions if each not in spec.numbers]
    if missing:
        raise BadSourceOption(f"the given offsets have no entry for {_shown(missing)}")
    wanted = {each: spec.numbers[each] for each in partitions}
    begins = [each for each, number in wanted.items() if number == EARLIEST_OFFSET]
    ends = [each for each, number in wanted.items() if number == LATEST_OFFSET]
    offsets = {each: Offset(number) for each, number in wanted.items() if number >= 0}
    offsets |= consumer.beginning_offsets(begins) if begins else {}
    offsets |= consumer.end_offsets(ends) if ends else {}
    return offsets


def _offsets_for_times(
    consumer: Consumer, spec: OffsetSpec, partitions: Collection[TopicPartition]
) -> Offsets:
    times = (
        dict.fromkeys(partitions, int(spec.time))
        if spec.time is not None
        else {each: spec.numbers[each] for each in partitions if each in spec.numbers}
    )
    missing = [each for each in partitions if each not in times]
    if missing:
        raise BadSourceOption(f"the given timestamps have no entry for {_shown(missing)}")
    found = consumer.offsets_for_times(times)
    offsets = {each: at.offset for each, at in found.items() if at is not None}
    late = [each for each in partitions if each not in offsets]
    if late and not spec.is_latest_without_match:
        raise BadSourceOption(
            f"{_shown(late)} has no record at or after the given timestamp; with "
            "startingOffsetsByTimestampStrategy=latest it is read from its end"
        )
    return offsets | (consumer.end_offsets(late) if late else {})


def _shown(partitions: Collection[TopicPartition]) -> str:
    names = [f"{topic}-{number}" for topic, number in sorted(partitions)]
    rest = f" and {len(names) - _SHOWN_MAX} more" if len(names) > _SHOWN_MAX else ""
    return ", ".join(names[:_SHOWN_MAX]) + rest
