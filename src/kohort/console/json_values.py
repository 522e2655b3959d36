"""Converts values to JSON that is safe within an HTML page. Pure."""

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from typing import Any

from kohort.types import TopicPartition


def jsonable(item: Any) -> Any:
    """Field names become JSON names."""
    if item is None or isinstance(item, bool | int | float | str):
        return item
    if isinstance(item, TopicPartition):
        return {"topic": item.topic, "partition": item.partition}
    if isinstance(item, Mapping):
        return {str(name): jsonable(each) for name, each in item.items()}
    if isinstance(item, Sequence | Set):
        return [jsonable(each) for each in item]
    if is_dataclass(item) and not isinstance(item, type):
        return {each.name: jsonable(getattr(item, each.name)) for each in fields(item)}
    raise TypeError(f"{type(item).__name__} has no JSON")


def dump(item: Any) -> str:
    """Safe within a script element and as one line of a feed, whatever strings it contains."""
    text = json.dumps(jsonable(item), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    # A lone surrogate is not valid UTF-8.
    return text.encode("utf-8", "backslashreplace").decode()
