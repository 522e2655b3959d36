"""Masks what differs between any two runs: ids, addresses and timestamps.

A mask consists of the kind of the id and the order of first appearance, so that equal ids have
equal masks and different ids have different ones. Nothing else is changed.
"""

import json
import re
from collections.abc import Callable
from typing import Final, TypeAlias

from tests.contract.conversations.message_tree import Heap, Mark, Tree

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

_UNKNOWN: Final = "?"

NOW: Final = "<now>"

_NOW_WITHIN_MS: Final = 600_000
"""Conversations use other timestamps that are further away."""


class Masks:
    """The masks of one conversation.

    `token` is the part of every name that makes it unique to this conversation.
    """

    def __init__(self, token: str, now_ms: Callable[[], int]) -> None:
        self._token = token
        self._now_ms = now_ms
        self._numbers: dict[str, dict[object, int]] = {}

    def mask(self, tree: Tree) -> Json:
        """Replace every id with its mask; new ids get the next number."""
        return self._walk(tree, self._number)

    def _walk(self, tree: Tree, number: Callable[[str, object], str]) -> Json:
        match tree:
            case dict():
                return {name: self._walk(inner, number) for name, inner in tree.items()}
            case list():
                return [self._walk(inner, number) for inner in tree]
            case Heap():
                return [self._walk(inner, number) for inner in sorted(tree.items, key=self._rank)]
            case Mark():
                return f"<{tree.kind} {number(tree.kind, tree.raw)}>"
            case str():
                return self._mask_text(tree, number)
            case bool() | float() | None:
                return tree
            case int():
                is_now = abs(tree - self._now_ms()) < _NOW_WITHIN_MS
                return NOW if is_now else tree

    def _rank(self, tree: Tree) -> str:
        """The sort key of an unordered item: its text before new ids are numbered."""
        return json.dumps(self._walk(tree, self._find_number))

    def _mask_text(self, text: str, number: Callable[[str, object], str]) -> str:
        text = text.replace(self._token, "")
        return _UUID.sub(lambda match: f"<{number(text[: match.start()], match[0])}>", text)

    def _number(self, kind: str, raw: object) -> str:
        numbers = self._numbers.setdefault(kind, {})
        return str(numbers.setdefault(raw, len(numbers) + 1))

    def _find_number(self, kind: str, raw: object) -> str:
        return str(self._numbers.get(kind, {}).get(raw, _UNKNOWN))
