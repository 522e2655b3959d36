"""Test vectors from Apache Kafka: encoded bytes with their decoded fields.

vectors/Vectors.java writes them to vectors/records.json with Kafka's classes.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kohort.wire.schema import Field, schema_of

_FILE = Path(__file__).parent / "vectors" / "records.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaVector:
    """One value: the name of Kafka's class, the version prefix, the bytes and the fields."""

    name: str
    version: int
    data: bytes
    fields: dict[str, Any]

    def value(self, cls: type) -> Any:
        """The value as an instance of `cls`. Fails if the fields differ."""
        return _fill(cls, self.fields)

    def __str__(self) -> str:
        return f"{self.name} v{self.version}, {len(self.data)} bytes"


@cache
def all_vectors() -> tuple[KafkaVector, ...]:
    return tuple(
        KafkaVector(
            name=each["name"],
            version=each["version"],
            data=bytes.fromhex(each["hex"]),
            fields=each["fields"],
        )
        for each in json.loads(_FILE.read_text(encoding="ascii"))
    )


def vectors_of(*names: str) -> list[KafkaVector]:
    found = [each for each in all_vectors() if each.name in names]
    assert {each.name for each in found} == set(names)
    return found


def _fill(cls: type, theirs: dict[str, Any]) -> Any:
    contents = {re.sub("(?=[A-Z])", "_", name).lower(): value for name, value in theirs.items()}
    ours = {field.name: field for field in schema_of(cls).fields}
    # Kafka has a separate class for the oldest offset commit, without the later fields.
    is_legacy = set(contents) == {"offset", "metadata", "commit_timestamp"}
    assert is_legacy or set(contents) == set(ours)
    return cls(**{name: _convert(ours[name], value) for name, value in contents.items()})


def _convert(field: Field, value: Any) -> Any:
    if value is None:
        return None
    if field.kind == "array":
        assert field.element is not None
        return tuple(_convert(field.element, item) for item in value)
    if field.kind == "struct":
        assert field.struct is not None
        return _fill(field.struct, value)
    return bytes.fromhex(value) if field.kind in ("bytes", "uuid") else value
