"""Every well-formed random request is answered or parked, or closes its connection."""

import os
import time
from pathlib import Path
from random import Random

import pytest

from kohort.types import Topic
from kohort.wire.consumer_protocol import Subscription, encode_subscription
from tests.node.broker_harness import BrokerHarness, new_batch
from tests.node.random_requests import KnownValues, RandomRequests

REQUESTS = 5_000

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1"}

SUBSCRIPTION = encode_subscription(Subscription(topics=(Topic("t"),)))


@pytest.fixture
def seed() -> int:
    seed = int(os.environ.get("KOHORT_SEED", time.time_ns() % 2**32))
    print(f"KOHORT_SEED={seed}")
    return seed


def test_every_random_request_is_answered_or_parked(tmp_path: Path, seed: int) -> None:
    random = Random(seed)  # noqa: S311  # nothing here is secret
    harness = BrokerHarness(tmp_path, SETTINGS)
    harness.create("t", 3)
    idempotent = new_batch("a", producer_id=1, producer_epoch=0, base_sequence=0)
    pool = KnownValues(
        texts=("t", "t", "g", "m", "consumer", "range", "__consumer_offsets", "retention.ms", "1"),
        blobs=(new_batch("a", "b"), idempotent, SUBSCRIPTION),
        ids=(harness.id_of("t"),),
    )
    inventor = RandomRequests(random, pool)
    waiting = []

    for _ in range(REQUESTS):
        body, version = inventor.next_request()
        try:
            pending = harness.ask(body, version)
        except BaseException as error:
            error.add_note(f"version {version} of {body}")
            raise
        if not pending.is_answered:
            waiting.append(pending)
        if random.random() < 0.01:
            harness.advance(random.choice((1, 100, 10_000, 3_600_000)))

    harness.advance(3_600_000)
    assert all(pending.is_answered for pending in waiting)
    harness.restart()
    harness.close()
