"""Random well-formed requests. Half of the names in them exist."""

import struct
from dataclasses import dataclass
from random import Random
from typing import Any

from kohort.node.dispatch import SERVED
from kohort.types import ZERO_UUID
from kohort.wire.api import find_api
from kohort.wire.schema import FIXED, Field, schema_of

_NUMBERS = (-2, -1, 0, 0, 1, 1, 2, 3, 5)
"""Small numbers are meaningful. Medium ones would only create topics that take long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownValues:
    """Names, ids and bytes that the broker knows."""

    texts: tuple[str, ...]
    blobs: tuple[bytes, ...]
    ids: tuple[bytes, ...]


class RandomRequests:
    """Generates requests; the same seed gives the same requests."""

    def __init__(self, random: Random, pool: KnownValues) -> None:
        self._random = random
        self._pool = pool
        self._kinds = [(key, version) for key, versions in SERVED.items() for version in versions]

    def next_request(self) -> tuple[object, int]:
        """Return a request and its version."""
        key, version = self._random.choice(self._kinds)
        api = find_api(key)
        assert api is not None
        return self._fill(api.request, version), version

    def _fill(self, cls: type, version: int) -> Any:
        living = [field for field in schema_of(cls).fields if field.exists_in(version)]
        return cls(**{field.name: self._value(field, version) for field in living})

    def _value(self, field: Field, version: int) -> Any:
        if field.is_nullable(version) and self._random.random() < 0.3:
            return None
        if field.kind == "array":
            assert field.element is not None
            count = self._random.choice((0, 1, 1, 1, 2, 3))
            return tuple(self._value(field.element, version) for _ in range(count))
        if field.kind == "struct":
            assert field.struct is not None
            return self._fill(field.struct, version)
        return self._leaf(field.kind)

    def _leaf(self, kind: str) -> Any:
        random, pool = self._random, self._pool
        match kind:
            case "string":
                return random.choice((*pool.texts, "", "new", "a b", "\N{SNOWMAN}" * 100))
            case "bytes" | "records":
                return random.choice((*pool.blobs, b"", random.randbytes(random.randrange(90))))
            case "uuid":
                return random.choice((*pool.ids, ZERO_UUID, random.randbytes(16)))
            case "bool":
                return random.random() < 0.5
            case "float64":
                return random.random()
            case _:
                return self._number(kind)

    def _number(self, kind: str) -> int:
        bits = 8 * struct.calcsize(FIXED[kind])
        low = 0 if kind.startswith("u") else -(2 ** (bits - 1))
        high = low + 2**bits - 1
        drawn = self._random.choice((*_NUMBERS, low, high, self._random.randint(low, high)))
        return max(low, min(high, drawn))
