"""Values of any declared message in any version: named samples, and Hypothesis strategies.

A field that a version does not have keeps its default, so that decoding returns an equal value.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

from hypothesis import strategies as st

from kohort.types import ZERO_UUID
from kohort.wire.api import all_apis
from kohort.wire.schema import FIXED, Field, schema_of

_WIDE = "\N{LATIN SMALL LETTER E WITH ACUTE}\N{GRINNING FACE}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to fill a message. Without `number`, `text` or `blob` all leaf values differ."""

    name: str
    number: Callable[[int, int], int] | None = None
    text: str | None = None
    blob: bytes | None = None
    items: tuple[int, ...] = (2,)
    """The number of array items by nesting depth; the last number is for all deeper arrays."""
    nulls: tuple[str, ...] = ()
    """The types of nullable fields that are null."""


VARIANTS = (
    Variant(name="full"),
    Variant(name="null", nulls=("string", "bytes", "array", "struct")),
    Variant(name="null within", nulls=("string", "bytes")),
    Variant(name="empty", number=lambda _low, _high: 0, text="", blob=b"", items=(0,)),
    Variant(name="hollow", text="", blob=b"", items=(2, 0)),
    Variant(name="lowest", number=lambda low, _high: low),
    Variant(name="highest", number=lambda _low, high: high),
    Variant(
        name="longer than one length byte", text=_WIDE * 30, blob=bytes(range(180)), items=(1,)
    ),
    Variant(name="longer than two length bytes", text=_WIDE * 2731, blob=b"b" * 17_000, items=(1,)),
    Variant(name="many items", items=(128, 1)),
    Variant(name="many items within", items=(1, 130, 1)),
)


def build(cls: type, version: int, variant: Variant) -> Any:
    """A message with all fields of the version filled according to the variant."""
    return _Filler(version, variant).fill(cls, 0)


@dataclass(frozen=True, slots=True)
class Message:
    """One of the two messages of an API."""

    cls: type
    key: int
    kind: str

    @property
    def versions(self) -> range:
        return schema_of(self.cls).versions

    def __str__(self) -> str:
        return self.cls.__name__


MESSAGES = tuple(
    Message(cls, api.key, kind)
    for api in all_apis()
    for kind, cls in (("request", api.request), ("response", api.response))
)


def messages() -> Iterator[tuple[Message, int]]:
    """Every message of every API, in every version."""
    for message in MESSAGES:
        for version in message.versions:
            yield message, version


@cache
def values(cls: type, version: int) -> st.SearchStrategy[Any]:
    """Any value of a declared class that one version can encode."""
    return st.builds(
        cls,
        **{f.name: _any(f, version) for f in schema_of(cls).fields if f.exists_in(version)},
    )


def limits(kind: str) -> tuple[int, int]:
    """The lowest and the highest number of a wire type."""
    if kind == "bool":
        return 0, 1
    bits = 8 * struct.calcsize(FIXED[kind])
    if kind.startswith("u"):
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


class _Filler:
    """Fills a declaration. Leaf values are numbered, so that all differ."""

    def __init__(self, version: int, variant: Variant) -> None:
        self.version = version
        self.variant = variant
        self.numbers = count(1)

    def fill(self, cls: type, depth: int) -> Any:
        present = [f for f in schema_of(cls).fields if f.exists_in(self.version)]
        return cls(**{f.name: self.value(f, depth) for f in present})

    def value(self, field: Field, depth: int) -> Any:
        if field.kind in self.variant.nulls and field.is_nullable(self.version):
            return None
        if field.kind == "array":
            return self._items(field, depth)
        if field.kind == "struct":
            assert field.struct is not None
            return self.fill(field.struct, depth)
        return self._leaf(field.kind)

    def _items(self, field: Field, depth: int) -> tuple[Any, ...]:
        assert field.element is not None
        items = self.variant.items
        length = items[min(depth, len(items) - 1)]
        return tuple(self.value(field.element, depth + 1) for _ in range(length))

    def _leaf(self, kind: str) -> Any:
        number, variant = next(self.numbers), self.variant
        if kind == "string":
            return f"text {number}" if variant.text is None else variant.text
        if kind == "bytes":
            return b"blob %d" % number if variant.blob is None else variant.blob
        if kind == "uuid":
            return self._uuid(number)
        low, high = limits(kind)
        if variant.number is not None:
            chosen = variant.number(low, high)
        else:  # far from zero, so that all bytes of a wide number are used
            chosen = (high // 3 + number) % high if kind != "bool" else number % 2
        return {"bool": bool, "float64": float}.get(kind, int)(chosen)

    def _uuid(self, number: int) -> bytes:
        if self.variant.number is None:
            return struct.pack(">qq", number, -number)
        return ZERO_UUID if self.variant.number(0, 1) == 0 else b"\xff" * 16


def _any(field: Field, version: int) -> st.SearchStrategy[Any]:
    strategy: st.SearchStrategy[Any]
    if field.kind == "array":
        assert field.element is not None
        strategy = st.lists(_any(field.element, version), max_size=3).map(tuple)
    elif field.kind == "struct":
        assert field.struct is not None
        strategy = values(field.struct, version)
    else:
        strategy = _any_leaf(field.kind)
    return st.none() | strategy if field.is_nullable(version) else strategy


@cache
def _any_leaf(kind: str) -> st.SearchStrategy[Any]:
    match kind:
        case "string":
            return st.text(max_size=40)
        case "bytes":
            return st.binary(max_size=40)
        case "uuid":
            return st.just(ZERO_UUID) | st.binary(min_size=16, max_size=16)
        case "bool":
            return st.booleans()
        case "float64":
            return st.floats(allow_nan=False)
        case _:
            return st.integers(*limits(kind))
