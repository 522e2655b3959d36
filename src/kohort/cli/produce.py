"""kohort produce: lines into records, by librdkafka's idempotent producer.

Each line is one record. Whatever is not delivered is told, and makes the exit code 1.
"""

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final

import typer

from kohort.cli.clusters import Bootstrap, Config
from kohort.cli.streaming import (
    Kafka,
    note,
    one_sentence_about,
    read_options,
    taking_a_kill_for_ctrl_c,
)

if TYPE_CHECKING:
    from confluent_kafka import Producer

    from kohort.cli.record_lines import NewLine


class Input(StrEnum):
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


_Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Where to write.")]
_File = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Read from here, and not from stdin.")
]
_Input = Annotated[
    Input,
    typer.Option("--input", help="A line is a value, or an object as `consume --json` writes."),
]
_Separator = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="What parts key and value on a line; \\t is a tab."),
]
_Key = Annotated[str | None, typer.Option(metavar="TEXT", help="The key of records without one.")]
_Header = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="A header of every record; may be repeated."),
]
_Partition = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Write here; else by key, or by chance.")
]
_Null = Annotated[
    str | None, typer.Option("--null", metavar="TEXT", help="A key or value like this is null.")
]
_Acks = Annotated[Acks, typer.Option(help="Who must have a record before it counts as delivered.")]
_Compression = Annotated[Compression, typer.Option(help="How batches are compressed.")]
_Timeout = Annotated[
    float, typer.Option(metavar="SECONDS", min=0.1, help="How long a delivery is tried.")
]
_AsJson = Annotated[bool, typer.Option("--json", help="Tell what came of it in JSON.")]

_SHOWN_EVERY: Final = 1000
"""Lines between two looks at how far it has come."""


def run(
    topic: _Topic,
    *,
    bootstrap: Bootstrap,
    file: _File = None,
    input_format: _Input = Input.LINES,
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
    """Write a record for each line of a file, or of standard input.

    A failed delivery is told with its line and its reason, and the exit code is then 1.

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
        # What it has to say is said by us.
        "log_level": 0,
        **read_options(kafka, command_config),
    }
    default = _Defaults(
        key=None if key is None else key.encode(),
        headers=_read_headers(header or ()),
        partition=partition,
    )
    read = _reader(input_format, key_separator, null)
    # Bad words are refused before a file is opened, and a file before a broker is asked.
    with one_sentence_about(_CannotProduce):
        source = sys.stdin.buffer if file is None else _open(file)
        producer = _open_producer(settings, topic, timeout)
        deliveries = _Deliveries(producer, topic)
        with source:
            _hint(source)
            is_interrupted = not _send_all(source, read, default, deliveries)
        deliveries.finish(timeout)
        _show(deliveries, topic, as_json=as_json)
        if is_interrupted:
            raise typer.Exit(130)
        if deliveries.failed:
            raise typer.Exit(1)


class _CannotProduce(Exception):
    """Nothing can be written at all; the message is the sentence to show."""


class _Defaults:
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


def _reader(
    input_format: Input, separator: str | None, null: str | None
) -> "Callable[[bytes], NewLine]":
    from kohort.cli import record_lines  # noqa: PLC0415  # other verbs need none

    if input_format is Input.JSON and (separator is not None or null is not None):
        hint = "--key-separator and --null are for plain lines; JSON says it all by itself."
        raise typer.BadParameter(hint, param_hint="--input")
    if separator == "":
        raise typer.BadParameter("it is empty.", param_hint="--key-separator")
    if input_format is Input.JSON:
        return record_lines.read_json
    parting = None if separator is None else separator.replace("\\t", "\t").encode()
    absent = None if null is None else null.encode()
    return lambda line: record_lines.read_plain(line, separator=parting, null=absent)


def _open(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}.", param_hint="--file") from None


def _open_producer(settings: dict[str, Any], topic: str, timeout: float) -> "Producer":
    from confluent_kafka import KafkaException, Producer  # noqa: PLC0415  # other verbs need none

    try:
        producer = Producer(settings)
    except KafkaException as error:
        raise typer.BadParameter(f"{error.args[0].str()}.", param_hint="--kafka") from None
    try:
        found = producer.list_topics(topic, timeout=min(timeout, 30.0)).topics[topic]
    except KafkaException as error:
        where = settings["bootstrap.servers"]
        raise _CannotProduce(f"no broker answers at {where}: {error.args[0].str()}") from None
    if found.error is not None:
        raise _CannotProduce(f"topic {topic!r} cannot be written: {found.error.str()}")
    return producer


def _hint(source: BinaryIO) -> None:
    if source.isatty():
        note("one record per line; Ctrl-D ends")


def _send_all(
    source: BinaryIO,
    read: "Callable[[bytes], NewLine]",
    default: _Defaults,
    deliveries: "_Deliveries",
) -> bool:
    """Whether all of it was read: Ctrl-C ends the reading, and what was read is delivered."""
    from kohort.cli.record_lines import BadLine  # noqa: PLC0415  # as above

    progress = _progress()
    try:
        with taking_a_kill_for_ctrl_c():
            for number, line in enumerate(source, start=1):
                try:
                    wanted = read(line.removesuffix(b"\n"))
                except BadLine as error:
                    deliveries.fail(number, str(error))
                else:
                    deliveries.send(number, wanted, default)
                if number % _SHOWN_EVERY == 0:
                    progress(number, deliveries)
    except KeyboardInterrupt:
        return False
    finally:
        progress(None, deliveries)
    return True


def _progress() -> "Callable[[int | None, _Deliveries], None]":
    """Where somebody watches, one line that changes; else nothing."""
    if not sys.stderr.isatty() or sys.stdin.isatty():
        return lambda _number, _deliveries: None

    def show(number: int | None, deliveries: "_Deliveries") -> None:
        if number is None:
            sys.stderr.write("\r\x1b[K")
        else:
            sys.stderr.write(f"\r{number:,} read, {deliveries.delivered:,} delivered\x1b[K")
        sys.stderr.flush()

    return show


class _Deliveries:
    """Hands records to the producer, and hears what becomes of them."""

    def __init__(self, producer: "Producer", topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self.by_partition: Counter[int] = Counter()
        self.failed = 0
        # Callbacks come on whichever thread polls.
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        # A line may be long in coming; what became of the last one is told meanwhile.
        self._ear = threading.Thread(target=self._listen, daemon=True)
        self._ear.start()

    @property
    def delivered(self) -> int:
        return self.by_partition.total()

    def send(self, number: int, wanted: "NewLine", default: _Defaults) -> None:
        from confluent_kafka import KafkaException  # noqa: PLC0415  # as above

        def hear(error: Any, message: Any) -> None:
            if error is not None:
                self.fail(number, error.str())
                return
            with self._lock:
                self.by_partition[message.partition()] += 1

        if wanted.timestamp == 0:
            self.fail(number, "the producer takes a timestamp of 0 for none")
            return
        partition = wanted.partition if default.partition is None else default.partition
        words: dict[str, Any] = {
            "key": default.key if wanted.key is None else wanted.key,
            "value": wanted.value,
            "headers": [*default.headers, *wanted.headers],
            "on_delivery": hear,
        }
        if partition is not None:
            words["partition"] = partition
        if wanted.timestamp is not None:
            words["timestamp"] = wanted.timestamp
        while True:
            try:
                self._producer.produce(self._topic, **words)
            except BufferError:  # it holds as much as it may: wait until some is gone
                self._producer.poll(0.1)
            except (KafkaException, OverflowError, TypeError, ValueError) as error:
                told = error.args[0].str() if isinstance(error, KafkaException) else str(error)
                self.fail(number, told)
                return
            else:
                return

    def fail(self, number: int, reason: str) -> None:
        with self._lock:
            self.failed += 1
        note(f"line {number} was not delivered: {reason}")

    def finish(self, timeout: float) -> None:
        # Each record has its own time to be delivered in; a little more, and all have been told of.
        left = self._producer.flush(timeout + 5)
        self._is_over.set()
        self._ear.join()
        if left:
            self.failed += left
            note(f"{left} more records were not delivered in time")

    def _listen(self) -> None:
        while not self._is_over.is_set():
            self._producer.poll(0.1)


def _show(deliveries: _Deliveries, topic: str, *, as_json: bool) -> None:
    by_partition = dict(sorted(deliveries.by_partition.items()))
    if as_json:
        said = {
            "topic": topic,
            "delivered": deliveries.delivered,
            "failed": deliveries.failed,
            "partitions": {str(number): count for number, count in by_partition.items()},
        }
        typer.echo(json.dumps(said))
        return
    where = ", ".join(f"{count} in partition {number}" for number, count in by_partition.items())
    failed = f", {deliveries.failed} failed" if deliveries.failed else ""
    many = "record" if deliveries.delivered == 1 else "records"
    typer.echo(f"{deliveries.delivered} {many} delivered to {topic}{failed}{where and ': '}{where}")
