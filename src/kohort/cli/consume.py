"""kohort consume: prints records to stdout, with or without a consumer group.

Messages about assignments go to stderr. A group's offsets are committed after the records are
written, and when the command ends, also by Ctrl-C.
"""

import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Final

import typer

from kohort.cli.cluster_options import Bootstrap, Config
from kohort.cli.messages import fail, print_stderr
from kohort.cli.record_lines import RecordField, format_json, format_plain
from kohort.cli.record_options import (
    Kafka,
    check_reachable,
    forward_consumer_warnings,
    read_options,
    read_start_time,
    report_errors,
    stop_on_signal,
)
from kohort.client.consumer import Consumer
from kohort.client.errors import ConfigurationError, ConsumerError, CorruptRecordError
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.client.rebalances import ConsumerRebalanceListener
from kohort.client.skipped_ranges import SkippedRanges
from kohort.types import Millis, Offset, Partition, Topic, TopicPartition


class AssignorName(StrEnum):
    RANGE = "range"
    ROUND_ROBIN = "roundrobin"
    STICKY = "sticky"
    COOPERATIVE_STICKY = "cooperative-sticky"


_Topics = Annotated[
    list[str],
    typer.Argument(metavar="TOPIC...", help="Topics to read. With --group also one ^PATTERN."),
]
_Group = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Join this consumer group."),
]
_FromBeginning = Annotated[
    bool,
    typer.Option("--from-beginning", help="Start at the log start if no offset is committed."),
]
_Partition = Annotated[
    list[int] | None,
    typer.Option(
        metavar="N", min=0, help="Read only this partition. May be repeated. Not with --group."
    ),
]
_Offset = Annotated[
    str | None,
    typer.Option(
        metavar="N", help="Start offset: a number, -N before the end, earliest or latest."
    ),
]
_Since = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Start time: 2026-11-16T09:00, or 90m, 6h, 7d ago."),
]
_UntilEnd = Annotated[
    bool, typer.Option("--until-end", help="Stop at the current end of the log. Not with --group.")
]
_Max = Annotated[
    int | None, typer.Option("--max", metavar="N", min=1, help="Stop after N records.")
]
_Timeout = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", min=0.1, help="Stop if no record arrives for this long."),
]
_InstanceId = Annotated[
    str | None, typer.Option(metavar="ID", help="Join as the static member with this instance id.")
]
_Assignor = Annotated[
    list[AssignorName] | None,
    typer.Option(help="Partition assignor. May be repeated, preferred one first."),
]
_NoCommit = Annotated[bool, typer.Option("--no-commit", help="Do not commit offsets.")]
_SkipMalformed = Annotated[
    bool,
    typer.Option(
        "--skip-malformed", help="Continue after batches that cannot be decoded, and report them."
    ),
]
_Show = Annotated[
    list[RecordField] | None,
    typer.Option(help="Print this field before the value, tab-separated. May be repeated."),
]
_Null = Annotated[str, typer.Option("--null", metavar="TEXT", help="Text to print for null.")]
_AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per record.")]
_Quiet = Annotated[bool, typer.Option("--quiet", help="Print no messages about assignments.")]

_POLL_MS: Final = 200
"""Ctrl-C takes effect within this time."""

_POLL_RECORDS_MAX: Final = 500


def run(
    topics: _Topics,
    *,
    bootstrap: Bootstrap,
    group: _Group = None,
    from_beginning: _FromBeginning = False,
    partition: _Partition = None,
    offset: _Offset = None,
    since: _Since = None,
    until_end: _UntilEnd = False,
    most: _Max = None,
    timeout: _Timeout = None,
    instance_id: _InstanceId = None,
    assignor: _Assignor = None,
    no_commit: _NoCommit = False,
    skip_malformed: _SkipMalformed = False,
    show: _Show = None,
    null: _Null = "null",
    as_json: _AsJson = False,
    quiet: _Quiet = False,
    kafka: Kafka = None,
    command_config: Config = None,
) -> None:
    """Print the records of topics, with or without a consumer group.

    Runs until Ctrl-C unless an option stops it. Exits with 1 if fewer than --max records arrive.

    \b
      kohort consume orders --from-beginning --until-end
      kohort consume orders --group billing --show key --json
      kohort consume orders --partition 0 --offset -10 --max 10
    """
    start = _StartPosition(
        partitions=tuple(map(Partition, partition or ())),
        offset=_read_offset(offset),
        since=read_start_time(since),
        is_earliest=from_beginning,
    )
    if group is None:
        _check_options_without_group(topics, instance_id, assignor, is_without_commit=no_commit)
    else:
        start.check_in_group(is_until_end=until_end)
    options: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "client.id": "kohort-consume",
        "allow.auto.create.topics": False,
        "exclude.internal.topics": False,
        "auto.offset.reset": "earliest" if from_beginning else "latest",
        "enable.auto.commit": group is not None and not no_commit,
        **_group_options(group, instance_id, assignor),
        **read_options(kafka, command_config),
    }
    limits = _StopConditions(
        is_until_end=until_end, record_max=most, timeout=timeout, skips_malformed=skip_malformed
    )
    check_reachable(bootstrap)
    format_record = format_json if as_json else _plain_formatter(show or (), null)
    _consume(options, topics, start, limits, format_record, is_quiet=quiet)


def _group_options(
    group: str | None, instance_id: str | None, assignor: Collection[str] | None
) -> dict[str, Any]:
    return {
        **({} if group is None else {"group.id": group}),
        **({} if instance_id is None else {"group.instance.id": instance_id}),
        **({"partition.assignment.strategy": list(assignor)} if assignor else {}),
    }


class _StopConditions:
    def __init__(
        self,
        *,
        is_until_end: bool,
        record_max: int | None,
        timeout: float | None,
        skips_malformed: bool,
    ) -> None:
        self.is_until_end, self.record_max, self.timeout = is_until_end, record_max, timeout
        self.skips_malformed = skips_malformed


def _consume(
    options: dict[str, Any],
    topics: list[str],
    start: "_StartPosition",
    limits: _StopConditions,
    format_record: Callable[[ConsumerRecord], bytes],
    *,
    is_quiet: bool,
) -> None:
    print_line: Callable[[str], object] = (lambda _: None) if is_quiet else print_stderr
    with (
        report_errors(ConsumerError),
        forward_consumer_warnings(None if is_quiet else print_stderr),
        stop_on_signal() as is_stopping,
        _open(options) as consumer,
    ):
        ends: dict[TopicPartition, Offset] | None = None
        if "group.id" in options:
            _subscribe(consumer, topics, print_line)
        else:
            ends = _assign(consumer, topics, start, print_line, is_until_end=limits.is_until_end)
        count = _RecordPrinter(consumer, ends, limits).run(format_record, is_stopping)
    if limits.record_max is not None and count < limits.record_max and not is_stopping():
        fail(f"only {count} of {limits.record_max} records arrived")


def _open(options: dict[str, Any]) -> Consumer:
    try:
        return Consumer(options)
    except ConfigurationError as error:
        raise typer.BadParameter(f"{error}.", param_hint="--kafka") from None


def _plain_formatter(fields: Iterable[RecordField], null: str) -> Callable[[ConsumerRecord], bytes]:
    shown, is_terminal = tuple(fields), sys.stdout.isatty()
    return lambda record: format_plain(record, shown, null=null.encode(), is_terminal=is_terminal)


# Start position


class _StartPosition:
    def __init__(
        self,
        *,
        partitions: tuple[Partition, ...],
        offset: int | None,
        since: Millis | None,
        is_earliest: bool,
    ) -> None:
        self.partitions = partitions
        self.offset = offset
        self.since = since
        self.is_earliest = is_earliest
        if (offset is not None) + (since is not None) + is_earliest > 1:
            reason = "use only one of --from-beginning, --offset and --since."
            raise typer.BadParameter(reason, param_hint="--offset")

    def check_in_group(self, *, is_until_end: bool) -> None:
        for option, is_given in (
            ("--partition", bool(self.partitions)),
            ("--offset", self.offset is not None),
            ("--since", self.since is not None),
            ("--until-end", is_until_end),
        ):
            if is_given:
                reason = (
                    "not allowed with --group, which assigns partitions and starts at committed "
                    "offsets. Use `kohort groups reset` to change those."
                )
                raise typer.BadParameter(reason, param_hint=option)

    def find_offsets(
        self, consumer: Consumer, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, Offset]:
        """Return the first offset to read of each partition."""
        oldest = consumer.beginning_offsets(partitions)
        ends = consumer.end_offsets(partitions)
        if self.is_earliest:
            return oldest
        if self.since is not None:
            found = consumer.offsets_for_times(dict.fromkeys(partitions, self.since))
            return {each: hit.offset if hit else ends[each] for each, hit in found.items()}
        if self.offset is None:
            return ends
        if self.offset < 0:
            return {
                each: max(oldest[each], Offset(end + self.offset)) for each, end in ends.items()
            }
        offset = Offset(self.offset)
        return {each: min(max(oldest[each], offset), end) for each, end in ends.items()}


_NAMED_OFFSETS: Final = {"earliest": 0, "latest": 2**63 - 1}


def _read_offset(text: str | None) -> int | None:
    if text is None:
        return None
    if text in _NAMED_OFFSETS:
        return _NAMED_OFFSETS[text]
    if not text.removeprefix("-").isdecimal() or text == "-0":
        reason = f"{text!r} is not a number, earliest or latest."
        raise typer.BadParameter(reason, param_hint="--offset")
    return int(text)


def _check_options_without_group(
    topics: list[str],
    instance_id: str | None,
    assignor: list[AssignorName] | None,
    *,
    is_without_commit: bool,
) -> None:
    for option, is_given in (
        ("--instance-id", instance_id is not None),
        ("--assignor", bool(assignor)),
        ("--no-commit", is_without_commit),
        ("TOPIC", any(topic.startswith("^") for topic in topics)),
    ):
        if is_given:
            raise typer.BadParameter("needs --group.", param_hint=option)


# Partitions


def _assign(
    consumer: Consumer,
    topics: list[str],
    start: _StartPosition,
    print_line: Callable[[str], object],
    *,
    is_until_end: bool,
) -> dict[TopicPartition, Offset] | None:
    """Assign the partitions and seek. Return the offsets to stop at, if any."""
    partitions = sorted(_find_partitions(consumer, topics, start.partitions))
    offsets = start.find_offsets(consumer, partitions)
    ends = consumer.end_offsets(partitions) if is_until_end else None
    consumer.assign(partitions)
    for partition, offset in offsets.items():
        consumer.seek(partition, offset)
    shown = ", ".join(f"{each.topic}-{each.partition} from {offsets[each]}" for each in partitions)
    print_line(f"reading {shown}")
    return ends


def _find_partitions(
    consumer: Consumer, topics: list[str], selected: tuple[Partition, ...]
) -> Iterator[TopicPartition]:
    for topic in dict.fromkeys(topics):
        existing = consumer.partitions_for_topic(topic)
        if not existing:
            fail(f"topic {topic!r} does not exist")
        for partition in selected or existing:
            if partition not in existing:
                fail(f"topic {topic!r} has no partition {partition}; it has {len(existing)}")
            yield TopicPartition(Topic(topic), partition)


def _subscribe(consumer: Consumer, topics: list[str], print_line: Callable[[str], object]) -> None:
    class AssignmentPrinter(ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
            held = consumer.assignment() | frozenset(partitions)
            print_line(f"assigned {_format_partitions(partitions)}; holds {len(held)}")

        def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
            print_line(f"revoked {_format_partitions(partitions)}")

        def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
            print_line(f"lost {_format_partitions(partitions)}")

    patterns = [topic for topic in topics if topic.startswith("^")]
    if patterns:
        if len(topics) > 1:
            raise typer.BadParameter("a ^PATTERN must be the only TOPIC.", param_hint="TOPIC")
        consumer.subscribe(pattern=patterns[0], listener=AssignmentPrinter())
        return
    for topic in topics:
        if not consumer.partitions_for_topic(topic):
            fail(f"topic {topic!r} does not exist")
    consumer.subscribe(topics, listener=AssignmentPrinter())


def _format_partitions(partitions: Iterable[TopicPartition]) -> str:
    by_topic: dict[str, list[str]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(str(number))
    return ", ".join(f"{topic}-{','.join(each)}" for topic, each in by_topic.items()) or "nothing"


# Records


class _RecordPrinter:
    def __init__(
        self,
        consumer: Consumer,
        ends: dict[TopicPartition, Offset] | None,
        limits: _StopConditions,
    ) -> None:
        self._consumer = consumer
        self._ends = ends
        self._unfinished = dict(ends or {})
        """End offsets of partitions that are not read to their end yet."""
        self._record_max = limits.record_max
        self._timeout = limits.timeout
        self._skips_malformed = limits.skips_malformed
        self._skipped = SkippedRanges(print_stderr)

    def run(
        self,
        format_record: Callable[[ConsumerRecord], bytes],
        is_stopping: Callable[[], bool],
    ) -> int:
        """Print records until a stop condition is met. Return their number."""
        out, count, last = sys.stdout.buffer, 0, time.monotonic()
        while not is_stopping() and not self._is_finished(count):
            left = _POLL_RECORDS_MAX if self._record_max is None else self._record_max - count
            polled = self._poll(min(left, _POLL_RECORDS_MAX))
            for partition, records in polled.items():
                kept = self._before_end(partition, records)
                out.writelines(format_record(record) for record in kept)
                count += len(kept)
            # The next poll may commit these records, so they must be written before it.
            out.flush()
            now = time.monotonic()
            if polled:
                last = now
            elif self._timeout is not None and now - last >= self._timeout:
                break
        self._skipped.report_total()
        return count

    def _poll(self, count: int) -> Mapping[TopicPartition, list[ConsumerRecord]]:
        try:
            return self._consumer.poll(_POLL_MS, max_records=count)
        except CorruptRecordError as error:
            if not self._skips_malformed:
                fail(f"{error}; --skip-malformed continues without it")
            self._skipped.add(error.partition, error.offset, error.next_offset, error.reason)
            self._consumer.seek(error.partition, error.next_offset)
            return {}

    def _before_end(
        self, partition: TopicPartition, records: list[ConsumerRecord]
    ) -> list[ConsumerRecord]:
        if self._ends is None:
            return records
        return [record for record in records if record.offset < self._ends[partition]]

    def _is_finished(self, count: int) -> bool:
        if self._record_max is not None and count >= self._record_max:
            return True
        for partition, end in list(self._unfinished.items()):
            if self._consumer.position(partition) >= end:
                # Records after its end must not delay the other partitions.
                self._consumer.pause(partition)
                del self._unfinished[partition]
        return self._ends is not None and not self._unfinished
