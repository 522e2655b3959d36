"""What one task of a write does: it sends its rows through a producer of its own.

It ends when every record has been acknowledged, or it fails and says which were not. It never
takes back what was sent: a task that is tried again sends its rows again.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from kohort.pipeline.errors import BadSourceOption, PipelineError
from kohort.pipeline.sink.plan import Plan
from kohort.pipeline.sink.rows import Record, pieces, records
from kohort.types import value

_ROOM_S: Final = 0.1
"""How long to wait for room in the producer's queue before looking for failures."""

_GRACE_S: Final = 15.0
"""librdkafka gives up late by a second or two, and tells of it later on a busy machine."""

_PURGE_S: Final = 5.0

_KINDS_MAX: Final = 5
"""How many kinds of failures are told apart; protects the message, which Spark repeats often."""

_ADVICE: Final = {
    "UNKNOWN_TOPIC_OR_PART": "create the topic first; the broker does not",
    "_UNKNOWN_TOPIC": "create the topic first; the broker does not",
    "_UNKNOWN_PARTITION": "the topic has fewer partitions",
    # A batch of small records may be too large as well, where the topic's limit is small.
    "MSG_SIZE_TOO_LARGE": (
        "see kafka.message.max.bytes and kafka.batch.size, and max.message.bytes of the topic"
    ),
    "_MSG_TIMED_OUT": "not acknowledged within kafka.delivery.timeout.ms",
}


class NotWritten(PipelineError):
    """Records that were not delivered. Others of the same task may have been."""


@value
class Written:
    rows: int
    size_in_bytes: int
    """Of keys, values and headers, before compression."""


def check_settings(plan: Plan) -> None:
    """Let the producer itself say what is wrong with its settings; it is not let near a broker.

    Files are the executors' own, and may not be where this runs.
    """
    settings = {
        name: text
        for name, text in plan.settings.items()
        if name != "bootstrap.servers" and not name.endswith(".location")
    }
    complaint = _find_complaint(settings)
    if complaint is None:
        return
    # The producer may call a setting by another name than it was given under.
    alone = ((name, _find_complaint({name: text})) for name, text in settings.items())
    for name, its_complaint in alone:
        if its_complaint is not None:
            raise BadSourceOption(f"kafka.{name}: {its_complaint}")
    raise BadSourceOption(f"kafka.*: {complaint}")


def _find_complaint(settings: Mapping[str, str]) -> str | None:
    try:
        Producer({**settings, "log_level": 0}).close()
    except (KafkaException, TypeError, ValueError) as error:
        return _reason(error)
    return None


def write(plan: Plan, batches: Iterable[pa.RecordBatch]) -> Written:
    """Send all rows; NotWritten unless every one was acknowledged."""
    task = _Task(plan)
    try:
        for batch in batches:
            for piece in pieces(batch):
                task.send(piece)
        return task.finish()
    except BaseException:
        task.give_up()
        raise


class _Task:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._reports = _Reports()
        self._rows = 0
        self._bytes = 0
        ears = {
            "on_delivery": self._reports.note,
            # What is not reported was delivered: no call of Python for each record.
            "delivery.report.only.error": True,
            "error_cb": self._reports.hear,
        }
        try:
            self._producer = Producer({**plan.settings, **ears})
        except (KafkaException, TypeError, ValueError) as error:
            raise NotWritten(f"no producer could be made: {_reason(error)}") from error

    def send(self, piece: pa.RecordBatch) -> None:
        rows, size = records(self._plan, piece)
        self._rows += piece.num_rows
        self._bytes += size
        # One call for each record. The producer's call for many is no faster, and it forgets
        # headers and partitions.
        produce = self._producer.produce
        for topic, content, key, partition, headers in rows:
            try:
                produce(topic, content, key, partition, None, None, 0, headers)
            except BufferError:
                self._send_when_there_is_room((topic, content, key, partition, headers))
            except (KafkaException, ValueError) as error:
                self._refuse(topic, partition, error)
        self._producer.poll(0)
        self._reports.check(self._rows)

    def finish(self) -> Written:
        deadline_s = self._plan.delivery_ms / 1000 + _GRACE_S
        left = self._producer.flush(deadline_s)
        self._reports.check(self._rows)
        if left:
            raise NotWritten(
                f"{left} of {self._rows} records were not acknowledged within {deadline_s:.0f} s"
                f"{self._reports.last_words}"
            )
        self._producer.close()
        return Written(rows=self._rows, size_in_bytes=self._bytes)

    def give_up(self) -> None:
        """Send nothing more. What is on its way may arrive all the same."""
        self._producer.purge()
        self._producer.flush(_PURGE_S)

    def _send_when_there_is_room(self, record: Record) -> None:
        """It ends: what is in the queue is delivered, or fails in time and is found here."""
        topic, content, key, partition, headers = record
        while True:
            is_empty = len(self._producer) == 0
            try:
                self._producer.produce(topic, content, key, partition, None, None, 0, headers)
            except BufferError as error:
                if is_empty:
                    raise NotWritten(
                        f"a record for {_place(topic, partition)} is larger than all of "
                        "kafka.queue.buffering.max.kbytes: make that larger"
                    ) from error
            except (KafkaException, ValueError) as error:
                self._refuse(topic, partition, error)
            else:
                return
            self._producer.poll(_ROOM_S)
            self._reports.check(self._rows)

    def _refuse(self, topic: str, partition: int, error: Exception) -> None:
        """Together with what is already known: a producer that is broken says why only once."""
        self._reports.add(_place(topic, partition), _reason(error))
        self._producer.poll(0)
        self._reports.check(self._rows)


class _Reports:
    """What the producer tells of: records that were not delivered, and brokers that are away."""

    def __init__(self) -> None:
        self._failed = 0
        self._kinds: dict[tuple[str, str], int] = {}
        self._heard: dict[str, str] = {}

    def note(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.add(_place(message.topic() or "?", message.partition()), _describe(error))

    def add(self, place: str, reason: str) -> None:
        self._failed += 1
        kind = place, reason
        if kind in self._kinds or len(self._kinds) < _KINDS_MAX:
            self._kinds[kind] = self._kinds.get(kind, 0) + 1

    def hear(self, error: KafkaError) -> None:
        # That all brokers are down only sums up what was said of each.
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001  # a public code's name
            self._heard[error.name()] = error.str()

    @property
    def last_words(self) -> str:
        """What the producer said last about each thing that troubled it."""
        return "".join(f"; {text}" for text in self._heard.values())

    def check(self, rows: int) -> None:
        if not self._failed:
            return
        told = [
            f"{place}: {reason} ({count} of them)" for (place, reason), count in self._kinds.items()
        ]
        if sum(self._kinds.values()) < self._failed:
            told.append("and others")
        raise NotWritten(
            f"{self._failed} of {rows} records were not delivered: "
            f"{'; '.join(told)}{self.last_words}"
        )


def _place(topic: str, partition: int | None) -> str:
    return topic if partition is None or partition < 0 else f"{topic}-{partition}"


def _reason(error: Exception) -> str:
    told = error.args[0] if error.args else error
    return _describe(told) if isinstance(told, KafkaError) else str(told)


def _describe(error: KafkaError) -> str:
    advice = _ADVICE.get(error.name())
    return f"{error.str()} [{error.name()}]" + (f", {advice}" if advice else "")
