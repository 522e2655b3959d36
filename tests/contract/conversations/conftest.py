"""The brokers that conversations are held with."""

from collections.abc import Iterator
from functools import partial

import pytest

from tests.apache.unavailable import Unavailable, skip
from tests.contract.conversations.houses import Houses, start_kafka, start_kohort


@pytest.fixture(scope="package")
def kohorts() -> Iterator[Houses]:
    houses = Houses(start_kohort)
    yield houses
    houses.close()


@pytest.fixture(scope="package")
def kafkas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Houses]:
    directory = tmp_path_factory.mktemp("conversations")
    houses = Houses(partial(start_kafka, directory=directory))
    try:
        houses.side("usual")
    except Unavailable as reason:
        skip(reason)
    yield houses
    houses.close()
