"""Runs the cells of one behaviour in parallel, because most of their time is waiting.

The first call starts all cells of the behaviour, each on its own thread; pytest then reports each
one as if it had run alone. The cells share brokers and nothing else.
"""

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeGuard

import pytest

from tests.apache.unavailable import Unavailable, skip
from tests.contract.brokers import Brokers
from tests.contract.clients.client_library import NotSupported
from tests.contract.expected_results import find_claim

_BEHAVIOURS = Path(__file__).with_name("behaviours")

PARALLEL_CELLS = 8
"""More would starve each other of CPU, and sessions would time out."""


class ParallelCells:
    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers
        self._pool = ThreadPoolExecutor(PARALLEL_CELLS, thread_name_prefix="cell")
        self._running: dict[str, Future[None]] = {}

    def call(self, item: pytest.Function) -> None:
        """Raises what the test function of the item has raised."""
        if item.nodeid not in self._running:
            for other in _siblings_of(item):
                self._running[other.nodeid] = self._pool.submit(self._run_cell, other)
        try:
            self._running.pop(item.nodeid).result()
        except Unavailable as reason:
            skip(reason)

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run_cell(self, item: pytest.Function) -> None:
        claim = find_claim(item)
        arguments: dict[str, Any] = dict(item.callspec.params)
        cluster = arguments["cluster"] = self._brokers.get(arguments["cluster"])
        if claim.is_there is not None:
            assert not claim.is_there(), f"the library supports it now: {claim.reason}"
            raise NotSupported(claim.reason)
        if claim.api_key is not None:
            assert not cluster.serves(claim.api_key), f"the broker serves it now: {claim.reason}"
            raise NotSupported(claim.reason)
        item.obj(**arguments)


def is_cell(item: pytest.Item) -> TypeGuard[pytest.Function]:
    return isinstance(item, pytest.Function) and item.path.parent == _BEHAVIOURS


def _siblings_of(item: pytest.Function) -> list[pytest.Function]:
    return [
        other
        for other in item.session.items
        if is_cell(other) and other.path == item.path and other.originalname == item.originalname
    ]
