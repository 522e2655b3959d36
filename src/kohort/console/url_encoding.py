"""Encodes group ids and topic names as URL path segments, and decodes them. Pure.

A group id may be anything: `a/b`, `..`, `orders.json` or empty. Percent-encoding does not work,
because servers and proxies decode it before they split the path. So every other byte is written as
`~` and two hexadecimal digits.
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")
_SUFFIXES: Final = (".json", ".feed")
_CODED: Final = re.compile(rb"~([0-9A-F]{2})")
_EMPTY: Final = "~"


def to_segment(name: str) -> str:
    """A path segment that neither a browser nor a suffix such as .json changes."""
    if not name:
        return _EMPTY
    encode_dots = name.startswith(".") or name.endswith(_SUFFIXES)
    plain = _PLAIN - {ord(".")} if encode_dots else _PLAIN
    # A name from UTF-8 has no lone surrogate, but one is no reason to fail.
    data = name.encode("utf-8", "surrogatepass")
    return "".join(chr(each) if each in plain else f"~{each:02X}" for each in data)


def from_segment(segment: str) -> str | None:
    """The name; None if it is not a canonical segment."""
    if segment == _EMPTY:
        return ""
    data = _CODED.sub(lambda found: bytes([int(found[1], 16)]), segment.encode())
    try:
        name = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    return name if name and to_segment(name) == segment else None


def group_path(group_id: str) -> str:
    return f"/groups/{to_segment(group_id)}"


def rebalance_path(group_id: str, key: str) -> str:
    return f"{group_path(group_id)}/rebalances/{to_segment(key)}"


def topic_path(topic: str) -> str:
    return f"/topics/{to_segment(topic)}"


def with_query(path: str, query: Mapping[str, object]) -> str:
    """Omits empty parameters."""
    given = {name: value for name, value in query.items() if value not in ("", None)}
    return f"{path}?{urlencode(given)}" if given else path
