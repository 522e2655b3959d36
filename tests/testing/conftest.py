"""The fixture `faulty_node`: a node with its faults."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testing.faulty_node import FaultyNode


@pytest.fixture
def faulty_node(tmp_path: Path) -> Iterator[FaultyNode]:
    node = FaultyNode(tmp_path)
    yield node
    node.thread.stop()
