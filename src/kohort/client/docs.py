"""The consumer's page for people, written from the tables that it obeys.

`python -m kohort.client.docs > docs/consumer.md` writes it anew. Nothing that consumes uses this
module.
"""

import inspect
import sys
from collections.abc import Iterable, Iterator
from typing import Final

from kohort.client import errors
from kohort.client.diary import WORDS
from kohort.client.options_table import OPTIONS, Option

_OPENING: Final = """\
# The consumer

This page is written by `python -m kohort.client.docs` from the table of options
([options_table.py](../src/kohort/client/options_table.py)), the errors and the log's words; it is
not edited by hand.

`kohort.Consumer` reads topics of Apache Kafka, from 3.0 on, or of a Kohort node, alone or as a
member of a group. It is all Python, and needs nothing but Kohort itself.

```python
import kohort

with kohort.Consumer(bootstrap_servers="localhost:9092", group_id="billing") as consumer:
    consumer.subscribe(["orders"])
    for record in consumer:
        bill(record.key, record.value)
```

## Reading

`for record in consumer` gives one record after the other, for ever, or until none has come for
`consumer_timeout_ms`. `consumer.poll(timeout_ms=1000)` gives what there is, by partition, as soon
as there is something:

```python
for partition, records in consumer.poll(timeout_ms=1000).items():
    for record in records:
        print(partition.topic, partition.partition, record.offset, record.value)
```

Programs that read record batches by themselves ask `poll_batches` for them, as they came.

A record has `topic`, `partition`, `offset`, `timestamp`, `timestamp_type`, `key`, `value`,
`headers` and `leader_epoch`. Keys and values are bytes, or what `key_deserializer` and
`value_deserializer` make of them.

What to read is said by topic or by pattern, for a group to share out, or by partition, without one:

```python
consumer.subscribe(["orders", "refunds"])
consumer.subscribe(pattern="orders-.*")  # or "^orders-.*", or re.compile("orders-.*")
consumer.assign([kohort.TopicPartition("orders", 0)])
```

A pattern is matched from the beginning of a name, as Python's `re.match` does; end it with `$` to
match all of it. New topics that it matches are found every `metadata_max_age_ms`. `subscription()`
and `assignment()` tell what it reads, `topics()` and `partitions_for(topic)` what there is.

## Where it stands

`position(partition)` is the offset of the record that comes next. `seek(partition, offset)`,
`seek_to_beginning()` and `seek_to_end()` go elsewhere; `pause(partition)` and `resume(partition)`
hold one back without the group noticing, and `paused()` tells which. `beginning_offsets`,
`end_offsets` and `offsets_for_times` look without reading. A group that has committed nothing
begins where `auto_offset_reset` says.

## Committing

What the program has done with is committed every `auto_commit_interval_ms`, before its partitions
go to another member, and when it is closed. It has done with a record when it asks for the next
one: what the last `poll` gave is done with when `poll` is called again, or `close`. So a program
that crashes, or leaves the `with` block by an error, reads again what it was working on, and
nothing is lost. With `enable_auto_commit=False` the program commits:

```python
consumer.commit()  # where it stands; returns once the group has it
consumer.commit({partition: 42})  # any offsets, of the records that come next
consumer.commit({partition: kohort.Position(offset=42, metadata="half way")})
consumer.commit_async(callback=lambda positions, error: ...)  # called by a later poll
consumer.committed(partition)  # a Position, or None
```

## Groups

A member is kept alive by a thread of its own while the program works. The program must poll within
`max_poll_interval_ms`; if it does not, its member leaves, so that others can go on, and comes back
with the next poll. A listener hears of partitions that come and go, on the program's thread, within
`poll`, and may use the consumer:

```python
class Listener(kohort.ConsumerRebalanceListener):
    def on_partitions_assigned(self, partitions):
        for partition in partitions:
            consumer.seek(partition, load_offset(partition))

    def on_partitions_revoked(self, partitions):
        consumer.commit()

    def on_partitions_lost(self, partitions):
        forget(partitions)  # another member may have them already: it is too late to commit


consumer.subscribe(["orders"], listener=Listener())
```

`consumer.rebalances()` tells of every rebalance it took part in: why it began, how long the group,
the leader and the program's own listener took, and what came and went. `group_metadata()` says how
it stands in its group: member id, generation, state. `enforce_rebalance(reason)` asks for a
rebalance, `unsubscribe()` leaves the group, and `close()` does so for good. `abandon()` is for
tests: it ends a consumer as a kill would, and its group has to notice.

## Threads

A consumer is used by one thread at a time; another one that comes in between is told so by a
`WrongUse`. Give each thread its own: they share partitions through their group.

## Options

They are given by keyword, `session_timeout_ms=10000`, or in a mapping under the names with dots,
`Consumer({"session.timeout.ms": 10000})`, or both; text will do for numbers. Names in the last
column, known from other clients, mean the same. A name that does not exist is refused."""

_ERRORS_OPENING: Final = """\
## Errors

All are subclasses of `kohort.errors.ConsumerError`. `is_retriable` says whether the same call may
succeed a moment later. Brokers that cannot be reached are no error of `poll`: it gives nothing, and
goes on trying."""

_WORDS_OPENING: Final = """\
## What it says

To the logger `kohort.consumer`, seldom: a word, and facts as `name=value`."""


def consumer_markdown() -> str:
    """The whole page."""
    blocks = (
        _OPENING,
        _table(("name", "default", "takes", "meaning", "also"), map(_row, OPTIONS.values())),
        _ERRORS_OPENING,
        _table(("error", "retriable", "meaning"), _errors()),
        _WORDS_OPENING,
        _table(
            ("word", "facts", "meaning"),
            (
                (_code(word), ", ".join(map(_code, facts)), meaning)
                for word, (facts, meaning) in WORDS.items()
            ),
        ),
    )
    return "\n\n".join(blocks) + "\n"


def _row(option: Option) -> tuple[str, ...]:
    also = ", ".join(map(_code, option.aliases))
    return _code(option.name), _default(option), option.kind, option.meaning, also


def _default(option: Option) -> str:
    match option.default:
        case None:
            return "none"
        case bool() as flag:
            return _code(str(flag).lower())
        case tuple() as several:
            return _code(", ".join(map(_name, several)))
        case single:
            return _code(single)


def _name(part: object) -> str:
    if isinstance(part, tuple):
        return ":".join(map(str, part))
    return str(getattr(part, "name", part))


def _errors() -> Iterator[tuple[str, ...]]:
    for name, found in vars(errors).items():
        if isinstance(found, type) and issubclass(found, errors.ConsumerError):
            meaning = " ".join((inspect.getdoc(found) or "").split())
            yield _code(name), "yes" if found.is_retriable else "no", meaning


def _code(text: object) -> str:
    return f"`{text}`"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A bar within a cell would end it, so it is written as Markdown wants it."""
    lines = (head, ("---",) * len(head), *rows)
    cells = ((cell.replace("|", "\\|") for cell in line) for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


if __name__ == "__main__":
    sys.stdout.write(consumer_markdown())
