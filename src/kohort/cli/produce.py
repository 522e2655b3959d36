"""kohort produce: produces one record per line with librdkafka's idempotent producer.

Each line that is not delivered is reported, and the exit code is then 1.
"""

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

import typer
from confluent_kafka import KafkaException, Producer

from kohort.cli import record_lines
from kohort.cli.cluster_options import Bootstrap, Config
from kohort.cli.messages import print_stderr
from kohort.cli.record_lines import BadRecordLine, ParsedRecord
from kohort.cli.record_options import (
    Kafka,
    read_options,
    report_errors,
    sigterm_as_ctrl_c,
)


class InputFormat(StrEnum):
    LINES = "lines"
    JSON = "json"


class Acks(StrEnum):
    ALL = "all"
    LEADER = "1"
    NONE = "0"


class Compression(StrEnum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


_Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Topic to write to.")]
_File = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Read this file instead of stdin.")
]
_Input = Annotated[
    InputFormat,
    typer.Option(
        "--input", help="lines: a line is a value; json: an object as `consume --json` prints."
    ),
]
_Separator = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Separator of key and value on a line; \\t is a tab."),
]
_Key = Annotated[str | None, typer.Option(metavar="TEXT", help="Key of records that have none.")]
_Header = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Add this header to every record. May be repeated."),
]
_Partition = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Partition to write to (default: by key, else random)."),
]
_Null = Annotated[
    str | None,
    typer.Option("--null", metavar="TEXT", help="Produce null for a key or value with this text."),
]
_Acks = Annotated[Acks, typer.Option(help="Acknowledgement that counts as delivered.")]
_Compression = Annotated[Compression, typer.Option(help="Compression of batches.")]
_Timeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.1, help="Delivery timeout of a record.")
]
_AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

_PROGRESS_LINES: Final = 1000
"""Lines between two updates of the progress line."""


def run(
    topic: _Topic,
    *,
    bootstrap: Bootstrap,
    file: _File = None,
    input_format: _Input = InputFormat.LINES,
    key_separator: _Separator = None,
    key: _Key = None,
    header: _Header = None,
    partition: _Partition = None,
    null: _Null = None,
    acks: _Acks = Acks.ALL,
    compression: _Compression = Compression.NONE,
    timeout: _Timeout = 60.0,
    as_json: _AsJson = False,
    kafka: Kafka = None,
    command_config: Config = None,
) -> None:
    """Produce one record per line of a file or of stdin.

    Each failed delivery is reported with its line number and reason. The exit code is then 1.

    \b
      echo hello | kohort produce greetings
      kohort produce orders --file orders.tsv --key-separator '\\t'
      kohort consume old --offset earliest --until-end --json > old.json
      kohort produce new --file old.json --input json --compression zstd
    """
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "acks": acks.value,
        "enable.idempotence": acks is Acks.ALL,
        "compression.type": compression.value,
        "message.timeout.ms": int(timeout * 1000),
        "linger.ms": 5,
        "client.id": "kohort-produce",
        # librdkafka's errors are reported by this command, not by its log.
        "log_level": 0,
        **read_options(kafka, command_config),
    }
    defaults = _RecordDefaults(
        key=None if key is None else key.encode(),
        headers=_read_headers(header or ()),
        partition=partition,
    )
    parse = _line_parser(input_format, key_separator, null)
    # Options are checked before the file is opened, and the file before a broker is contacted.
    with report_errors(_CannotProduce):
        source = sys.stdin.buffer if file is None else _open(file)
        producer = _open_producer(settings, topic, timeout)
        deliveries = _DeliveryTracker(producer, topic)
        with source:
            _print_hint(source)
            is_interrupted = not _send_all(source, parse, defaults, deliveries)
        deliveries.finish(timeout)
        _print_result(deliveries, topic, as_json=as_json)
        if is_interrupted:
            raise typer.Exit(130)
        if deliveries.failed:
            raise typer.Exit(1)


class _CannotProduce(Exception):
    """No record can be produced. The message is the sentence to print."""


class _RecordDefaults:
    def __init__(
        self,
        *,
        key: bytes | None,
        headers: tuple[tuple[str, bytes | None], ...],
        partition: int | None,
    ) -> None:
        self.key, self.headers, self.partition = key, headers, partition


def _read_headers(pairs: Any) -> tuple[tuple[str, bytes | None], ...]:
    headers = []
    for pair in pairs:
        name, equals, content = pair.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{pair!r} is not NAME=VALUE.", param_hint="--header")
        headers.append((name, content.encode()))
    return tuple(headers)


def _line_parser(
    input_format: InputFormat, separator: str | None, null: str | None
) -> Callable[[bytes], ParsedRecord]:
    if input_format is InputFormat.JSON and (separator is not None or null is not None):
        hint = "--key-separator and --null cannot be used with --input json."
        raise typer.BadParameter(hint, param_hint="--input")
    if separator == "":
        raise typer.BadParameter("must not be empty.", param_hint="--key-separator")
    if input_format is InputFormat.JSON:
        return record_lines.parse_json
    separator_bytes = None if separator is None else separator.replace("\\t", "\t").encode()
    null_bytes = None if null is None else null.encode()
    return lambda line: record_lines.parse_plain(line, separator=separator_bytes, null=null_bytes)


def _open(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}.", param_hint="--file") from None


def _open_producer(settings: dict[str, Any], topic: str, timeout: float) -> Producer:
    try:
        producer = Producer(settings)
    except KafkaException as error:
        raise typer.BadParameter(f"{error.args[0].str()}.", param_hint="--kafka") from None
    try:
        found = producer.list_topics(topic, timeout=min(timeout, 30.0)).topics[topic]
    except KafkaException as error:
        where = settings["bootstrap.servers"]
        raise _CannotProduce(f"no broker answered at {where}: {error.args[0].str()}") from None
    if found.error is not None:
        raise _CannotProduce(f"cannot write to topic {topic!r}: {found.error.str()}")
    return producer


def _print_hint(source: BinaryIO) -> None:
    if source.isatty():
        print_stderr("one record per line; Ctrl-D ends the input")


def _send_all(
    source: BinaryIO,
    parse: Callable[[bytes], ParsedRecord],
    defaults: _RecordDefaults,
    deliveries: "_DeliveryTracker",
) -> bool:
    """Return False if Ctrl-C ended the input. Lines that were read are still delivered."""
    show_progress = _progress_line()
    try:
        with sigterm_as_ctrl_c():
            for number, line in enumerate(source, start=1):
                try:
                    record = parse(line.removesuffix(b"\n"))
                except BadRecordLine as error:
                    deliveries.fail(number, str(error))
                else:
                    deliveries.send(number, record, defaults)
                if number % _PROGRESS_LINES == 0:
                    show_progress(number, deliveries)
    except KeyboardInterrupt:
        return False
    finally:
        show_progress(None, deliveries)
    return True


def _progress_line() -> "Callable[[int | None, _DeliveryTracker], None]":
    """Update one line on stderr, if it is a terminal and stdin is not."""
    if not sys.stderr.isatty() or sys.stdin.isatty():
        return lambda _number, _deliveries: None

    def show(number: int | None, deliveries: "_DeliveryTracker") -> None:
        if number is None:
            sys.stderr.write("\r\x1b[K")
        else:
            sys.stderr.write(f"\r{number:,} read, {deliveries.delivered:,} delivered\x1b[K")
        sys.stderr.flush()

    return show


class _DeliveryTracker:
    """Gives records to the producer and counts their delivery reports."""

    def __init__(self, producer: Producer, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self.by_partition: Counter[int] = Counter()
        self.failed = 0
        # Delivery reports arrive on any thread that polls.
        self._lock = threading.Lock()
        self._is_finished = threading.Event()
        # Polls for delivery reports while the main thread waits for the next line.
        self._poller = threading.Thread(target=self._poll, daemon=True)
        self._poller.start()

    @property
    def delivered(self) -> int:
        return self.by_partition.total()

    def send(self, number: int, record: ParsedRecord, defaults: _RecordDefaults) -> None:
        def on_delivery(error: Any, message: Any) -> None:
            if error is not None:
                self.fail(number, error.str())
                return
            with self._lock:
                self.by_partition[message.partition()] += 1

        if record.timestamp == 0:
            self.fail(number, "librdkafka cannot produce a record with timestamp 0")
            return
        partition = record.partition if defaults.partition is None else defaults.partition
        arguments: dict[str, Any] = {
            "key": defaults.key if record.key is None else record.key,
            "value": record.value,
            "headers": [*defaults.headers, *record.headers],
            "on_delivery": on_delivery,
        }
        if partition is not None:
            arguments["partition"] = partition
        if record.timestamp is not None:
            arguments["timestamp"] = record.timestamp
        while True:
            try:
                self._producer.produce(self._topic, **arguments)
            except BufferError:  # librdkafka's queue is full
                self._producer.poll(0.1)
            except (KafkaException, OverflowError, TypeError, ValueError) as error:
                reason = error.args[0].str() if isinstance(error, KafkaException) else str(error)
                self.fail(number, reason)
                return
            else:
                return

    def fail(self, number: int, reason: str) -> None:
        with self._lock:
            self.failed += 1
        print_stderr(f"line {number} was not delivered: {reason}")

    def finish(self, timeout: float) -> None:
        # Each record has its own delivery timeout, so all reports arrive shortly after it.
        left = self._producer.flush(timeout + 5)
        self._is_finished.set()
        self._poller.join()
        if left:
            self.failed += left
            print_stderr(f"{left} more records were not delivered within {timeout:g} s")

    def _poll(self) -> None:
        while not self._is_finished.is_set():
            self._producer.poll(0.1)


def _print_result(deliveries: _DeliveryTracker, topic: str, *, as_json: bool) -> None:
    by_partition = dict(sorted(deliveries.by_partition.items()))
    if as_json:
        result = {
            "topic": topic,
            "delivered": deliveries.delivered,
            "failed": deliveries.failed,
            "partitions": {str(number): count for number, count in by_partition.items()},
        }
        typer.echo(json.dumps(result))
        return
    where = ", ".join(f"{count} in partition {number}" for number, count in by_partition.items())
    failed = f", {deliveries.failed} failed" if deliveries.failed else ""
    noun = "record" if deliveries.delivered == 1 else "records"
    typer.echo(f"{deliveries.delivered} {noun} delivered to {topic}{failed}{where and ': '}{where}")
