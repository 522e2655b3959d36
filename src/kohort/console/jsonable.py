"""Values as JSON, and JSON that is harmless within a page. Pure."""

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass
from typing import Any

from kohort.client.topic_partition import TopicPartition


def jsonable(told: Any) -> Any:
    """Names stay: those of fields are the names in JSON."""
    if told is None or isinstance(told, bool | int | float | str):
        return told
    if isinstance(told, TopicPartition):
        return {"topic": told.topic, "partition": told.partition}
    if isinstance(told, Mapping):
        return {str(name): jsonable(each) for name, each in told.items()}
    if isinstance(told, Sequence | Set):
        return [jsonable(each) for each in told]
    if is_dataclass(told) and not isinstance(told, type):
        return {each.name: jsonable(getattr(told, each.name)) for each in fields(told)}
    raise TypeError(f"{type(told).__name__} has no JSON")


def dump(told: Any) -> str:
    """Harmless within a script element and a line of a feed, whatever names are in it."""
    text = json.dumps(jsonable(told), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    # Half a surrogate is no UTF-8.
    return text.encode("utf-8", "backslashreplace").decode()
