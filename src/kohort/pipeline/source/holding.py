"""What a query holds of its topics: all of them, or its share as a member of a group.

It lives beside Spark's driver for as long as the query runs. As a member it heartbeats from the
consumer's own thread, however long a batch takes; it takes part in a rebalance only when it is
asked to `settle`, which is between two batches, after the last one was committed.
"""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import Final

from kohort.client.consumer import Consumer
from kohort.client.errors import CommitFailed, ConsumerError
from kohort.client.listener import ConsumerRebalanceListener
from kohort.client.topic_partition import TopicPartition
from kohort.pipeline.errors import NoSuchTopic, NotJoined, PipelineError
from kohort.pipeline.source.options import Membership, SourceOptions, consumer_config
from kohort.pipeline.source.places import find_matches, find_partitions
from kohort.types import Offset, value

_LOGGER: Final = logging.getLogger("kohort.pipeline")

_SLICE_MS: Final = 100
"""How long it waits before it looks whether it must end."""

_IMPATIENT_S: Final = 1.0
"""How long a trigger waits for a rebalance; the next one goes on waiting."""

_LOOK_AGAIN_S: Final = 5.0
"""How often topics are looked up, where nobody tells of new partitions."""

_BATCH_MAX_MS: Final = 3_600_000
"""How long a group waits for a batch to end before it goes on without the query."""


@value
class Held:
    """What is held now, and which of it came, or came again, since this was last asked."""

    partitions: frozenset[TopicPartition]
    fresh: frozenset[TopicPartition]


class Holding(ABC):
    """Made when a query first needs it. `is_ending` says that it should stop waiting."""

    def __init__(self, options: SourceOptions, is_ending: Callable[[], bool]) -> None:
        self._options = options
        self._is_ending = is_ending
        self._kept: dict[TopicPartition, Offset] = {}
        """What the group has, as far as is known."""
        self.consumer = Consumer(self._config())

    def _config(self) -> dict[str, object]:
        own: dict[str, object] = {"enable.auto.commit": False, "auto.offset.reset": "earliest"}
        if self._options.group_id is not None:
            own["group.id"] = self._options.group_id
        return {**own, **consumer_config(self._options)}

    @abstractmethod
    def settle(self, *, is_patient: bool) -> Held | None:
        """What the query may read from now on; None while that is being decided."""

    @property
    @abstractmethod
    def current(self) -> frozenset[TopicPartition]:
        """What may be committed now."""

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """For the query's progress."""

    def commit(self, positions: Mapping[TopicPartition, Offset]) -> None:
        """Tell the group how far Spark has made everything durable; nothing it knows is told."""
        if self._options.group_id is None:
            return
        held = self.current
        news = {
            each: offset
            for each, offset in positions.items()
            if each in held and self._kept.get(each) != offset
        }
        if not news:
            return
        try:
            self.consumer.commit(news)
        except ConsumerError as error:
            self._take_refusal(error)
        else:
            self._kept |= news

    @abstractmethod
    def _take_refusal(self, error: ConsumerError) -> None:
        """A commit was not kept."""

    def find_committed(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, Offset]:
        """Where the group stands, as far as it does."""
        if self._options.group_id is None or not partitions:
            return {}
        found = self.consumer.committed(partitions)
        kept = {each: told.offset for each, told in found.items() if told is not None}
        self._kept = {each: at for each, at in self._kept.items() if each not in partitions} | kept
        return kept

    @property
    def kept(self) -> Mapping[TopicPartition, Offset]:
        return self._kept

    def close(self) -> None:
        """Leave the group, unless membership outlives the process."""
        self.consumer.close()


def hold(options: SourceOptions, is_ending: Callable[[], bool]) -> Holding:
    kind = Share if options.membership is Membership.GROUP else Everything
    return kind(options, is_ending)


class Everything(Holding):
    """All partitions, whoever else reads them."""

    def __init__(self, options: SourceOptions, is_ending: Callable[[], bool]) -> None:
        super().__init__(options, is_ending)
        self._partitions: frozenset[TopicPartition] = frozenset()
        self._look_at = 0.0

    @property
    def current(self) -> frozenset[TopicPartition]:
        return self._partitions

    def settle(self, *, is_patient: bool) -> Held:
        before = self._partitions
        if time.monotonic() >= self._look_at or is_patient:
            self._partitions = find_partitions(self.consumer, self._options)
            self._look_at = time.monotonic() + _LOOK_AGAIN_S
        return Held(partitions=self._partitions, fresh=self._partitions - before)

    def _take_refusal(self, error: ConsumerError) -> None:
        if isinstance(error, CommitFailed):
            raise PipelineError(
                f"group {self._options.group_id!r} has members, so that membership=none may not "
                "commit to it: use another group.id, or membership=group"
            ) from error
        _LOGGER.warning("commit postponed: %s", error)

    def describe(self) -> dict[str, object]:
        if self._options.group_id is None:
            return {}
        return {"id": self._options.group_id, "membership": Membership.NONE.value}


class _Pausing(ConsumerRebalanceListener):
    """What is assigned is read by tasks, and not by this consumer."""

    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer
        self.fresh: set[TopicPartition] = set()

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._consumer.pause(*partitions)
        self.fresh |= set(partitions)

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.fresh -= set(partitions)


class Share(Holding):
    """What the group gives its member."""

    def __init__(self, options: SourceOptions, is_ending: Callable[[], bool]) -> None:
        super().__init__(options, is_ending)
        self._check_topics()
        self._listener = _Pausing(self.consumer)
        if options.pattern is None:
            self.consumer.subscribe(options.topics, listener=self._listener)
        else:
            self.consumer.subscribe(pattern=options.pattern, listener=self._listener)

    def _config(self) -> dict[str, object]:
        config: dict[str, object] = {"max.poll.interval.ms": _BATCH_MAX_MS, **super()._config()}
        if self._options.instance_id is not None:
            config["group.instance.id"] = self._options.instance_id
        return config

    def _check_topics(self) -> None:
        """A member waits for its topics to be made; a query whose topic is misspelt should not."""
        if self._options.pattern is not None:
            if not find_matches(self.consumer, self._options.pattern):
                _LOGGER.warning("no topic matches yet; the query waits for one")
            return
        missing = set(self._options.topics) - self.consumer.topics()
        missing = {each for each in missing if not self.consumer.partitions_for(each)}
        if missing:
            names = ", ".join(sorted(missing))
            raise NoSuchTopic(f"topic {names} does not exist: create it, or mend its name")

    @property
    def current(self) -> frozenset[TopicPartition]:
        return self.consumer.assignment()

    def settle(self, *, is_patient: bool) -> Held | None:
        seconds = self._options.join_timeout_ms / 1000 if is_patient else _IMPATIENT_S
        end = time.monotonic() + seconds
        self.consumer.poll(0)
        while not self.consumer.group_metadata().is_stable:
            if self._is_ending():
                return None
            if time.monotonic() >= end:
                if is_patient:
                    raise NotJoined(self._why_not(seconds))
                return None
            self.consumer.poll(_SLICE_MS)
        fresh = frozenset(self._listener.fresh)
        self._listener.fresh.clear()
        return Held(partitions=self.consumer.assignment(), fresh=fresh)

    def _why_not(self, seconds: float) -> str:
        state = self.consumer.group_metadata().state
        return (
            f"group {self._options.group_id!r} gave the query nothing to read within "
            f"{seconds:.0f} s (it is {state}): some member may be busy and has not joined the "
            "rebalance; joinTimeoutMs allows for more time"
        )

    def _take_refusal(self, error: ConsumerError) -> None:
        """Whoever has the partition now reads those records again: the group may lag, not lead."""
        _LOGGER.warning("commit not kept: %s", error)

    def describe(self) -> dict[str, object]:
        standing = self.consumer.group_metadata()
        return {
            "id": standing.group_id,
            "membership": Membership.GROUP.value,
            "state": standing.state.value,
            "generation": int(standing.generation),
            "member_id": str(standing.member_id),
        }
