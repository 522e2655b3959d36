"""Names of groups and topics as parts of addresses, and back. Pure.

A group may be called anything: `a/b`, `..`, `orders.json` or nothing at all. Percent signs would
not do, since servers and proxies undo them before a path is taken apart. So what is not plain is
written as `~` and two hexadecimal digits for each byte.
"""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")
_ENDINGS: Final = (".json", ".feed")
_CODED: Final = re.compile(rb"~([0-9A-F]{2})")
_EMPTY: Final = "~"


def to_address(name: str) -> str:
    """One part of a path, which no browser and no ending changes."""
    if not name:
        return _EMPTY
    has_doubtful_dots = name.startswith(".") or name.endswith(_ENDINGS)
    plain = _PLAIN - {ord(".")} if has_doubtful_dots else _PLAIN
    # Half a surrogate cannot be in a name that came as UTF-8, but is no reason to fail.
    data = name.encode("utf-8", "surrogatepass")
    return "".join(chr(each) if each in plain else f"~{each:02X}" for each in data)


def from_address(part: str) -> str | None:
    """The name; None if no name has this address."""
    if part == _EMPTY:
        return ""
    data = _CODED.sub(lambda found: bytes([int(found[1], 16)]), part.encode())
    try:
        name = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
    return name if name and to_address(name) == part else None


def group_path(group_id: str) -> str:
    return f"/groups/{to_address(group_id)}"


def rebalance_path(group_id: str, key: str) -> str:
    return f"{group_path(group_id)}/rebalances/{to_address(key)}"


def topic_path(topic: str) -> str:
    return f"/topics/{to_address(topic)}"


def with_query(path: str, query: Mapping[str, object]) -> str:
    """Without what says nothing."""
    said = {name: value for name, value in query.items() if value not in ("", None)}
    return f"{path}?{urlencode(said)}" if said else path
