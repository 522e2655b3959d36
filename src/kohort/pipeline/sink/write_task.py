"""One task of a write: it sends its rows with its own producer.

It succeeds when every record is acknowledged, and else reports which were not. Sent records stay
sent: a task that Spark retries sends its rows again.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from kohort.pipeline.errors import BadSourceOption, PipelineError
from kohort.pipeline.sink.rows import Record, split_batch, to_records
from kohort.pipeline.sink.write_plan import WritePlan
from kohort.types import value

_QUEUE_FULL_S: Final = 0.1
"""How long to wait for space in the producer's queue before checking for failures."""

_GRACE_S: Final = 15.0
"""librdkafka reports a timeout a second or two late, later on a busy machine."""

_PURGE_S: Final = 5.0

_KINDS_MAX: Final = 5
"""Different failures in one message; limits its size, because Spark repeats it often."""

_ADVICE: Final = {
    "UNKNOWN_TOPIC_OR_PART": "create the topic first; the broker does not create it",
    "_UNKNOWN_TOPIC": "create the topic first; the broker does not create it",
    "_UNKNOWN_PARTITION": "the topic has fewer partitions",
    # A batch of small records can also exceed the topic's limit.
    "MSG_SIZE_TOO_LARGE": (
        "check kafka.message.max.bytes, kafka.batch.size, and the topic's max.message.bytes"
    ),
    "_MSG_TIMED_OUT": "not acknowledged within kafka.delivery.timeout.ms",
}


class NotWritten(PipelineError):
    """Some records were not delivered. Others of the same task may have been."""


@value
class WriteResult:
    rows: int
    size_in_bytes: int
    """Keys, values and headers, before compression."""


def check_settings(plan: WritePlan) -> None:
    """Create a producer without brokers, so that librdkafka checks the settings.

    File locations are left out: the files may exist on executors only.
    """
    settings = {
        name: text
        for name, text in plan.settings.items()
        if name != "bootstrap.servers" and not name.endswith(".location")
    }
    error = _find_error(settings)
    if error is None:
        return
    # librdkafka may report a setting under another name.
    alone = ((name, _find_error({name: text})) for name, text in settings.items())
    for name, its_error in alone:
        if its_error is not None:
            raise BadSourceOption(f"kafka.{name}: {its_error}")
    raise BadSourceOption(f"kafka.*: {error}")


def _find_error(settings: Mapping[str, str]) -> str | None:
    try:
        Producer({**settings, "log_level": 0}).close()
    except (KafkaException, TypeError, ValueError) as error:
        return _reason(error)
    return None


def write(plan: WritePlan, batches: Iterable[pa.RecordBatch]) -> WriteResult:
    """Send all rows; raise NotWritten unless all are acknowledged."""
    task = _WriteTask(plan)
    try:
        for batch in batches:
            for part in split_batch(batch):
                task.send(part)
        return task.finish()
    except BaseException:
        task.abort()
        raise


class _WriteTask:
    def __init__(self, plan: WritePlan) -> None:
        self._plan = plan
        self._reports = _DeliveryReports()
        self._rows = 0
        self._bytes = 0
        callbacks = {
            "on_delivery": self._reports.on_delivery,
            # No callback per delivered record.
            "delivery.report.only.error": True,
            "error_cb": self._reports.on_error,
        }
        try:
            self._producer = Producer({**plan.settings, **callbacks})
        except (KafkaException, TypeError, ValueError) as error:
            raise NotWritten(f"the producer could not be created: {_reason(error)}") from error

    def send(self, part: pa.RecordBatch) -> None:
        rows, size = to_records(self._plan, part)
        self._rows += part.num_rows
        self._bytes += size
        # produce_batch() is not faster, and it ignores headers and partitions.
        produce = self._producer.produce
        for topic, content, key, partition, headers in rows:
            try:
                produce(topic, content, key, partition, None, None, 0, headers)
            except BufferError:
                self._send_when_queue_has_space((topic, content, key, partition, headers))
            except (KafkaException, ValueError) as error:
                self._fail_record(topic, partition, error)
        self._producer.poll(0)
        self._reports.check(self._rows)

    def finish(self) -> WriteResult:
        deadline_s = self._plan.delivery_ms / 1000 + _GRACE_S
        left = self._producer.flush(deadline_s)
        self._reports.check(self._rows)
        if left:
            raise NotWritten(
                f"{left} of {self._rows} records were not acknowledged within {deadline_s:.0f} s"
                f"{self._reports.error_suffix}"
            )
        self._producer.close()
        return WriteResult(rows=self._rows, size_in_bytes=self._bytes)

    def abort(self) -> None:
        """Drop queued records. Records in flight may still arrive."""
        self._producer.purge()
        self._producer.flush(_PURGE_S)
        self._producer.close()

    def _send_when_queue_has_space(self, record: Record) -> None:
        """Ends in any case: queued records are delivered, or fail within the delivery timeout."""
        topic, content, key, partition, headers = record
        while True:
            is_empty = len(self._producer) == 0
            try:
                self._producer.produce(topic, content, key, partition, None, None, 0, headers)
            except BufferError as error:
                if is_empty:
                    raise NotWritten(
                        f"a record for {_target(topic, partition)} is larger than "
                        "kafka.queue.buffering.max.kbytes: increase it"
                    ) from error
            except (KafkaException, ValueError) as error:
                self._fail_record(topic, partition, error)
            else:
                return
            self._producer.poll(_QUEUE_FULL_S)
            self._reports.check(self._rows)

    def _fail_record(self, topic: str, partition: int, error: Exception) -> None:
        """Report it with earlier failures: a fatal error of the producer is reported only once."""
        self._reports.add(_target(topic, partition), _reason(error))
        self._producer.poll(0)
        self._reports.check(self._rows)


class _DeliveryReports:
    """Collects failed deliveries and the producer's own errors."""

    def __init__(self) -> None:
        self._failed = 0
        self._kinds: dict[tuple[str, str], int] = {}
        self._errors: dict[str, str] = {}

    def on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.add(_target(message.topic() or "?", message.partition()), _describe(error))

    def add(self, target: str, reason: str) -> None:
        self._failed += 1
        kind = target, reason
        if kind in self._kinds or len(self._kinds) < _KINDS_MAX:
            self._kinds[kind] = self._kinds.get(kind, 0) + 1

    def on_error(self, error: KafkaError) -> None:
        # ALL_BROKERS_DOWN only repeats the errors of each broker.
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001  # a public code's name
            self._errors[error.name()] = error.str()

    @property
    def error_suffix(self) -> str:
        """The last error of each kind that the producer reported."""
        return "".join(f"; {text}" for text in self._errors.values())

    def check(self, rows: int) -> None:
        if not self._failed:
            return
        failures = [
            f"{target}: {reason} ({count} records)"
            for (target, reason), count in self._kinds.items()
        ]
        if sum(self._kinds.values()) < self._failed:
            failures.append("and others")
        raise NotWritten(
            f"{self._failed} of {rows} records were not delivered: "
            f"{'; '.join(failures)}{self.error_suffix}"
        )


def _target(topic: str, partition: int | None) -> str:
    return topic if partition is None or partition < 0 else f"{topic}-{partition}"


def _reason(error: Exception) -> str:
    cause = error.args[0] if error.args else error
    return _describe(cause) if isinstance(cause, KafkaError) else str(cause)


def _describe(error: KafkaError) -> str:
    advice = _ADVICE.get(error.name())
    return f"{error.str()} [{error.name()}]" + (f", {advice}" if advice else "")
