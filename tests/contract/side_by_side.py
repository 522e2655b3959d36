"""Runs the cells of one behaviour side by side, because nearly all of their time is waiting.

When the first of them is called all of them start, each on a thread of its own; each is then
reported in its turn, as if it had run alone. A behaviour's cells share brokers and nothing else.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeGuard

import pytest

from tests.apache.unavailable import Unavailable, skip
from tests.contract.brokers import Brokers
from tests.contract.claims import find_claim
from tests.contract.clients.library import Lacking

_BEHAVIOURS = Path(__file__).with_name("behaviours")

AT_ONCE = 8
"""More would only wait for a processor, and sessions would end that should not."""


class SideBySide:
    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="cell")
        self._running: dict[str, Future[None]] = {}

    def call(self, item: pytest.Function) -> None:
        """Raises what the item's own function has raised."""
        if item.nodeid not in self._running:
            for other in _siblings_of(item):
                self._running[other.nodeid] = self._pool.submit(self._act, other)
        try:
            self._running.pop(item.nodeid).result()
        except Unavailable as reason:
            skip(reason)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _act(self, item: pytest.Function) -> None:
        claim = find_claim(item)
        arguments: dict[str, Any] = dict(item.callspec.params)
        cluster = arguments["cluster"] = self._brokers.get(arguments["cluster"])
        if claim.is_there is not None:
            assert not claim.is_there(), f"it has it by now: {claim.reason}"
            raise Lacking(claim.reason)
        if claim.api_key is not None:
            assert not cluster.serves(claim.api_key), f"it serves it by now: {claim.reason}"
            raise Lacking(claim.reason)
        item.obj(**arguments)


def is_cell(item: pytest.Item) -> TypeGuard[pytest.Function]:
    return isinstance(item, pytest.Function) and item.path.parent == _BEHAVIOURS


def _siblings_of(item: pytest.Function) -> list[pytest.Function]:
    return [
        other
        for other in item.session.items
        if is_cell(other) and other.path == item.path and other.originalname == item.originalname
    ]
