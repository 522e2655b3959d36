"""The brokers of the conversations."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.apache.unavailable import Unavailable, skip
from tests.contract.conversations.broker_pairs import BrokerProfiles, start_kafka, start_kohort
from tests.contract.conversations.conversation import DEFAULT


@pytest.fixture(scope="package")
def kohorts() -> Iterator[BrokerProfiles]:
    profiles = BrokerProfiles(start_kohort)
    yield profiles
    profiles.close()


@pytest.fixture(scope="package")
def kafkas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProfiles]:
    directory = tmp_path_factory.mktemp("conversations")
    profiles = BrokerProfiles(partial(start_kafka, directory=directory))
    try:
        profiles.address(DEFAULT)
    except Unavailable as reason:
        skip(reason)
    yield profiles
    profiles.close()
