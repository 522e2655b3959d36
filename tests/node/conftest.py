"""The fixture `harness`: a broker in a temporary directory."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.broker_harness import BrokerHarness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[BrokerHarness]:
    harness = BrokerHarness(tmp_path)
    yield harness
    harness.close()
