"""kohort consume: records on standard output, in a group or without one.

What is said about assignments goes to the error stream. A group's offsets are committed once the
records have been written, and when it ends, by Ctrl-C too.
"""

import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kohort.cli.clusters import Bootstrap, Config
from kohort.cli.record_lines import Field, write_json, write_plain
from kohort.cli.streaming import (
    Kafka,
    check_reachable,
    hearing_consumers,
    note,
    one_sentence_about,
    read_moment,
    read_options,
    refuse,
    until_told_to_end,
)
from kohort.types import Millis, Offset, Partition, Topic

if TYPE_CHECKING:
    from kohort.client.consumer import Consumer
    from kohort.client.fetching.records import ConsumerRecord
    from kohort.client.topic_partition import TopicPartition


class Assignor(StrEnum):
    RANGE = "range"
    ROUND_ROBIN = "roundrobin"
    STICKY = "sticky"
    COOPERATIVE_STICKY = "cooperative-sticky"


_Topics = Annotated[
    list[str], typer.Argument(metavar="TOPIC...", help="What to read; ^PATTERN with a group.")
]
_Group = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Share partitions and commits with this group."),
]
_FromBeginning = Annotated[
    bool,
    typer.Option("--from-beginning", help="Begin with the oldest record, unless committed."),
]
_Partition = Annotated[
    list[int] | None,
    typer.Option(metavar="N", min=0, help="Only this one; may be repeated. Without a group."),
]
_Offset = Annotated[
    str | None,
    typer.Option(metavar="N", help="Begin here: a number, -N before the end, earliest or latest."),
]
_Since = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="Begin then: 2026-11-16T09:00, or 90m, 6h, 7d ago."),
]
_UntilEnd = Annotated[
    bool, typer.Option("--until-end", help="Stop at what is the end now. Without a group.")
]
_Max = Annotated[int | None, typer.Option("--max", metavar="N", min=1, help="Stop after so many.")]
_Timeout = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", min=0.1, help="Stop when none has come for so long."),
]
_InstanceId = Annotated[
    str | None, typer.Option(metavar="ID", help="Be a static member under this name.")
]
_Assignor = Annotated[
    list[Assignor] | None,
    typer.Option(help="How partitions are dealt out; may be repeated, best first."),
]
_NoCommit = Annotated[bool, typer.Option("--no-commit", help="Leave the group's offsets alone.")]
_Show = Annotated[
    list[Field] | None,
    typer.Option(help="Put this before the value, with a tab; may be repeated."),
]
_Null = Annotated[str, typer.Option("--null", metavar="TEXT", help="How null is written.")]
_AsJson = Annotated[bool, typer.Option("--json", help="A JSON object for each record.")]
_Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing about assignments.")]

_POLL_MS: Final = 200
"""How long Ctrl-C may have to wait."""

_MOST_AT_ONCE: Final = 500


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
    show: _Show = None,
    null: _Null = "null",
    as_json: _AsJson = False,
    quiet: _Quiet = False,
    kafka: Kafka = None,
    command_config: Config = None,
) -> None:
    """Read topics, alone or as a member of a group, until Ctrl-C.

    The exit code is 0 when it ended as it was told to, and 1 where fewer than --max came in time.

    \b
      kohort consume orders --from-beginning --until-end
      kohort consume orders --group billing --show key --json
      kohort consume orders --partition 0 --offset -10 --max 10
    """
    beginning = _Beginning(
        partitions=tuple(Partition(each) for each in partition or ()),
        offset=_read_offset(offset),
        since=read_moment(since),
        is_earliest=from_beginning,
    )
    if group is None:
        _refuse_group_words(topics, instance_id, assignor, is_commit_refused=no_commit)
    else:
        beginning.refuse_in_group(is_until_end=until_end)
    options: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "client.id": "kohort-consume",
        "allow.auto.create.topics": False,
        "exclude.internal.topics": False,
        "auto.offset.reset": "earliest" if from_beginning else "latest",
        "enable.auto.commit": group is not None and not no_commit,
        **({} if group is None else {"group.id": group}),
        **({} if instance_id is None else {"group.instance.id": instance_id}),
        **({"partition.assignment.strategy": list(assignor)} if assignor else {}),
        **read_options(kafka, command_config),
    }
    limits = _Limits(is_until_end=until_end, most=most, timeout=timeout)
    write = write_json if as_json else _plain_writer(show or (), null)
    check_reachable(bootstrap)
    _consume(options, topics, beginning, limits, write, is_quiet=quiet)


class _Limits:
    """When it is enough."""

    def __init__(self, *, is_until_end: bool, most: int | None, timeout: float | None) -> None:
        self.is_until_end, self.most, self.timeout = is_until_end, most, timeout


def _consume(
    options: dict[str, Any],
    topics: list[str],
    beginning: "_Beginning",
    limits: _Limits,
    write: "Callable[[ConsumerRecord], bytes]",
    *,
    is_quiet: bool,
) -> None:
    from kohort.client.errors import ConsumerError  # noqa: PLC0415  # other verbs need none

    say: Callable[[str], object] = (lambda _: None) if is_quiet else note
    with (
        one_sentence_about(ConsumerError),
        hearing_consumers(None if is_quiet else note),
        until_told_to_end() as is_told,
        _open(options) as consumer,
    ):
        goals: dict[TopicPartition, Offset] | None = None
        if "group.id" in options:
            _subscribe(consumer, topics, say)
        else:
            goals = _assign(consumer, topics, beginning, say, is_until_end=limits.is_until_end)
        count = _Reading(consumer, goals, limits).run(write, is_told)
    if limits.most is not None and count < limits.most and not is_told():
        refuse(f"only {count} of {limits.most} records came")


def _open(options: dict[str, Any]) -> "Consumer":
    from kohort.client.consumer import Consumer  # noqa: PLC0415  # as above
    from kohort.client.errors import BadOption  # noqa: PLC0415

    try:
        return Consumer(options)
    except BadOption as error:
        raise typer.BadParameter(f"{error}.", param_hint="--kafka") from None


def _plain_writer(fields: Iterable[Field], null: str) -> "Callable[[ConsumerRecord], bytes]":
    wanted, is_for_eyes = tuple(fields), sys.stdout.isatty()
    return lambda record: write_plain(record, wanted, null=null.encode(), is_for_eyes=is_for_eyes)


# Where to begin


class _Beginning:
    def __init__(
        self,
        *,
        partitions: tuple[Partition, ...],
        offset: "int | Millis | None",
        since: Millis | None,
        is_earliest: bool,
    ) -> None:
        self.partitions = partitions
        self.offset = offset
        self.since = since
        self.is_earliest = is_earliest
        if (offset is not None) + (since is not None) + is_earliest > 1:
            reason = "only one of --from-beginning, --offset and --since can be meant."
            raise typer.BadParameter(reason, param_hint="--offset")

    def refuse_in_group(self, *, is_until_end: bool) -> None:
        for word, is_given in (
            ("--partition", bool(self.partitions)),
            ("--offset", self.offset is not None),
            ("--since", self.since is not None),
            ("--until-end", is_until_end),
        ):
            if is_given:
                reason = "a group deals out partitions and knows where it stands; leave out --group"
                raise typer.BadParameter(
                    f"{reason}, or use `kohort groups reset`.", param_hint=word
                )

    def places(
        self, consumer: "Consumer", partitions: "Collection[TopicPartition]"
    ) -> "dict[TopicPartition, Offset]":
        """The first offset to read, of each."""
        oldest = consumer.beginning_offsets(partitions)
        ends = consumer.end_offsets(partitions)
        if self.is_earliest:
            return oldest
        if self.since is not None:
            found = consumer.offsets_for_times(dict.fromkeys(partitions, self.since))
            return {each: told.offset if told else ends[each] for each, told in found.items()}
        if self.offset is None:
            return ends
        if self.offset < 0:
            return {
                each: max(oldest[each], Offset(end + self.offset)) for each, end in ends.items()
            }
        place = Offset(self.offset)
        return {each: min(max(oldest[each], place), end) for each, end in ends.items()}


_EDGES: Final = {"earliest": 0, "latest": 2**63 - 1}


def _read_offset(text: str | None) -> int | None:
    if text is None:
        return None
    if text in _EDGES:
        return _EDGES[text]
    if not text.removeprefix("-").isdecimal() or text == "-0":
        reason = f"{text!r} is neither a number, nor earliest, nor latest."
        raise typer.BadParameter(reason, param_hint="--offset")
    return int(text)


def _refuse_group_words(
    topics: list[str],
    instance_id: str | None,
    assignor: list[Assignor] | None,
    *,
    is_commit_refused: bool,
) -> None:
    for word, is_given in (
        ("--instance-id", instance_id is not None),
        ("--assignor", bool(assignor)),
        ("--no-commit", is_commit_refused),
        ("TOPIC", any(topic.startswith("^") for topic in topics)),
    ):
        if is_given:
            raise typer.BadParameter("it has a meaning only with --group.", param_hint=word)


# What to read


def _assign(
    consumer: "Consumer",
    topics: list[str],
    beginning: _Beginning,
    say: Callable[[str], object],
    *,
    is_until_end: bool,
) -> "dict[TopicPartition, Offset] | None":
    """Begins to read; where to stop, if at all."""
    partitions = sorted(_find_partitions(consumer, topics, beginning.partitions))
    places = beginning.places(consumer, partitions)
    goals = consumer.end_offsets(partitions) if is_until_end else None
    consumer.assign(partitions)
    for partition, place in places.items():
        consumer.seek(partition, place)
    shown = ", ".join(f"{each.topic}-{each.partition} from {places[each]}" for each in partitions)
    say(f"reading {shown}")
    return goals


def _find_partitions(
    consumer: "Consumer", topics: list[str], wanted: tuple[Partition, ...]
) -> "Iterator[TopicPartition]":
    from kohort.client.topic_partition import TopicPartition  # noqa: PLC0415  # as above

    for topic in dict.fromkeys(topics):
        there = consumer.partitions_for(topic)
        if not there:
            refuse(f"topic {topic!r} does not exist")
        for partition in wanted or there:
            if partition not in there:
                refuse(f"topic {topic!r} has no partition {partition}; it has {len(there)}")
            yield TopicPartition(Topic(topic), partition)


def _subscribe(consumer: "Consumer", topics: list[str], say: Callable[[str], object]) -> None:
    from kohort.client.listener import ConsumerRebalanceListener  # noqa: PLC0415  # as above

    class Listener(ConsumerRebalanceListener):
        def on_partitions_assigned(self, partitions: "Collection[TopicPartition]") -> None:
            held = consumer.assignment() | frozenset(partitions)
            say(f"assigned {_names(partitions)}; holds {len(held)}")

        def on_partitions_revoked(self, partitions: "Collection[TopicPartition]") -> None:
            say(f"revoked {_names(partitions)}")

        def on_partitions_lost(self, partitions: "Collection[TopicPartition]") -> None:
            say(f"lost {_names(partitions)}")

    patterns = [topic for topic in topics if topic.startswith("^")]
    if patterns:
        if len(topics) > 1:
            raise typer.BadParameter("a pattern stands alone.", param_hint="TOPIC")
        consumer.subscribe(pattern=patterns[0], listener=Listener())
        return
    for topic in topics:
        if not consumer.partitions_for(topic):
            refuse(f"topic {topic!r} does not exist")
    consumer.subscribe(topics, listener=Listener())


def _names(partitions: "Iterable[TopicPartition]") -> str:
    by_topic: dict[str, list[str]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(str(number))
    return ", ".join(f"{topic}-{','.join(each)}" for topic, each in by_topic.items()) or "nothing"


# Reading


class _Reading:
    def __init__(
        self,
        consumer: "Consumer",
        goals: "dict[TopicPartition, Offset] | None",
        limits: _Limits,
    ) -> None:
        self._consumer = consumer
        self._goals = goals
        self._open = dict(goals or {})
        """Where the goal has not been reached yet."""
        self._most = limits.most
        self._timeout = limits.timeout

    def run(self, write: "Callable[[ConsumerRecord], bytes]", is_told: Callable[[], bool]) -> int:
        """How many records were written before it was time to stop."""
        out, count, last = sys.stdout.buffer, 0, time.monotonic()
        while not is_told() and not self._is_enough(count):
            left = _MOST_AT_ONCE if self._most is None else self._most - count
            polled = self._consumer.poll(_POLL_MS, max_records=min(left, _MOST_AT_ONCE))
            for partition, records in polled.items():
                wanted = self._wanted(partition, records)
                out.writelines(write(record) for record in wanted)
                count += len(wanted)
            # What was written is out before the next poll says that it is done with.
            out.flush()
            now = time.monotonic()
            if polled:
                last = now
            elif self._timeout is not None and now - last >= self._timeout:
                break
        return count

    def _wanted(
        self, partition: "TopicPartition", records: "list[ConsumerRecord]"
    ) -> "list[ConsumerRecord]":
        if self._goals is None:
            return records
        return [record for record in records if record.offset < self._goals[partition]]

    def _is_enough(self, count: int) -> bool:
        if self._most is not None and count >= self._most:
            return True
        for partition, goal in list(self._open.items()):
            if self._consumer.position(partition) >= goal:
                # What comes behind its end must not keep the others waiting.
                self._consumer.pause(partition)
                del self._open[partition]
        return self._goals is not None and not self._open
