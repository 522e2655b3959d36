"""Shared by all tests: Hypothesis profiles, the --rewrite option and an Apache Kafka broker."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import settings

from tests.apache.shared import SharedKafka, shared_kafka
from tests.apache.unavailable import Unavailable, skip

# Shells start background processes with SIGINT ignored, and child processes inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: a slow machine is not a failing test. The blob reproduces a failure elsewhere.
settings.register_profile("default", deadline=None, print_blob=True, max_examples=50)
settings.register_profile("quick", settings.get_profile("default"), max_examples=15)
settings.register_profile("full", settings.get_profile("default"), max_examples=200)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    help_ = "rewrite the expectations of traces and transcripts; read the diff before committing"
    parser.addoption("--rewrite", action="store_true", help=help_)


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedKafka]:
    """Shared by many tests, so topics and groups need unique names."""
    with ExitStack() as stack:
        try:
            kafka = stack.enter_context(shared_kafka(tmp_path_factory.mktemp("apache-kafka")))
        except Unavailable as reason:
            skip(reason)
        yield kafka
