"""A node to ask, in a directory of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node.asking import Scene


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.close()
