"""What every test shares: how Hypothesis searches, how traces are rewritten, an Apache Kafka."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.apache.cluster import Kafka
from tests.apache.unavailable import Unavailable, skip

# A shell that starts us in the background has us ignore Ctrl-C, and so would the programs we start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: a slow machine is not a failing test. The blob reproduces a failure elsewhere.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("default"), max_examples=200)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "default")


def pytest_addoption(parser: pytest.Parser) -> None:
    help_ = "write down what traces say now; read the difference, keep only what you understand"
    parser.addoption("--rewrite", action="store_true", help=help_)


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """Started once for all tests that ask for it, so topics and groups need names of their own."""
    try:
        kafka = Kafka(tmp_path_factory.mktemp("apache-kafka"))
    except Unavailable as reason:
        skip(reason)
    with kafka:
        yield kafka
