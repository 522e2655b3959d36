"""Fixtures for the oracles."""

from collections.abc import Iterator
from types import SimpleNamespace

import cramjam
import pytest
from kafka import codec


@pytest.fixture(autouse=True, scope="package")
def snappy_for_kafka_python() -> Iterator[None]:
    """Provide kafka-python's optional snappy library with cramjam.

    Only for the tests of this package; other tests use kafka-python as it is installed.
    """
    with pytest.MonkeyPatch.context() as patch:
        blocks = SimpleNamespace(
            compress=lambda data: bytes(cramjam.snappy.compress_raw(data)),
            decompress=lambda data: bytes(cramjam.snappy.decompress_raw(data)),
        )
        patch.setattr(codec, "snappy", codec.snappy or blocks)
        yield
