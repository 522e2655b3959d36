"""What the oracles need."""

from collections.abc import Iterator
from types import SimpleNamespace

import cramjam
import pytest
from kafka import codec


@pytest.fixture(autouse=True, scope="package")
def snappy_for_kafka_python() -> Iterator[None]:
    """It frames snappy itself, but leaves the blocks to a library that need not be there.

    It is lent one here only: elsewhere a test tells what it can do as it is installed.
    """
    with pytest.MonkeyPatch.context() as patch:
        blocks = SimpleNamespace(
            compress=lambda data: bytes(cramjam.snappy.compress_raw(data)),
            decompress=lambda data: bytes(cramjam.snappy.decompress_raw(data)),
        )
        patch.setattr(codec, "snappy", codec.snappy or blocks)
        yield
