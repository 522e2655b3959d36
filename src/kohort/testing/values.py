"""Records as a test writes them: text or bytes, pairs, or whole records."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from kohort import types
from kohort.types import Millis
from kohort.wire.records import Header, NewRecord

Content: TypeAlias = str | bytes | None
"""A key or a value of a record. Text is encoded as UTF-8."""

RecordHeaders: TypeAlias = Mapping[str, Content] | Iterable[tuple[str, Content]]
"""Pairs, if a header occurs more than once."""


@types.value(kw_only=False)
class ProducerRecord:
    """A record to produce. For a field that is None, the argument of `produce` is used."""

    value: Content
    key: Content = None
    headers: RecordHeaders | None = None
    timestamp: int | None = None
    """In milliseconds since 1970."""
    partition: int | None = None


Producible: TypeAlias = str | bytes | tuple[Content, Content] | ProducerRecord | None
"""A value, a pair of key and value, or a whole record. None is a record without a value."""


def read_producible(given: Producible) -> ProducerRecord:
    match given:
        case ProducerRecord():
            return given
        case (key, content):
            return ProducerRecord(content, key)
        case str() | bytes() | None:
            return ProducerRecord(given)
    raise TypeError(
        f"cannot produce {given!r}: use text, bytes, a pair (key, value) or a ProducerRecord"
    )


def encode_record(given: ProducerRecord, now: Millis) -> NewRecord:
    """`now` is the timestamp of a record without one."""
    headers = given.headers or ()
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return NewRecord(
        key=_encode(given.key, "key"),
        value=_encode(given.value, "value"),
        timestamp=now if given.timestamp is None else Millis(given.timestamp),
        headers=tuple(
            Header(key=name, value=_encode(content, f"header {name}")) for name, content in pairs
        ),
    )


def _encode(content: Content, what: str) -> bytes | None:
    match content:
        case bytes() | None:
            return content
        case str():
            return content.encode()
    raise TypeError(f"the {what} {content!r} is neither text nor bytes")
