"""What Kafka's measuring tools print is understood, and what they never print is refused."""

from collections.abc import Callable
from functools import partial

import pytest

from bench.beside_kafka.records import loads, read_fetched, read_produced, read_round_trips
from bench.kit.brokers import CannotDo

PRODUCED = """\
25001 records sent, 5000.2 records/sec (0.48 MB/sec), 99.0 ms avg latency, 200.0 ms max latency.
50000 records sent, 9000.1 records/sec (8.58 MB/sec), 12.31 ms avg latency, 262.00 ms max latency, \
4 ms 50th, 30 ms 95th, 46 ms 99th, 48 ms 99.9th.
43750 steady state records sent, 9500.0 records/sec (9.06 MB/sec), 11.02 ms avg latency, 57.00 ms \
max latency, 3 ms 50th, 20 ms 95th, 31 ms 99th, 40 ms 99.9th.
"""

FETCHED = """\
2026-01-01 00:00:00:000, 2026-01-01 00:00:05:000, 47.6837, 9.5367, 500000, 100000.0, 3000, 2000, \
23.8419, 250000.0
"""


def test_the_producer_tool_is_read_without_its_warm_up() -> None:
    rate, p99 = read_produced(PRODUCED)

    assert rate == pytest.approx(9.5, abs=0.01)
    assert p99 == 31


def test_the_consumer_tool_is_read_without_its_rebalance() -> None:
    assert read_fetched(FETCHED, 500_000) == pytest.approx(25.0, abs=0.01)


def test_a_consumer_that_gave_up_early_has_failed() -> None:
    with pytest.raises(CannotDo, match="500000"):
        read_fetched(FETCHED, 500_001)


def test_the_latency_tool_is_read() -> None:
    said = "0\t55.0\nAvg latency: 1.2 ms\nPercentiles: 50th = 1, 99th = 4, 99.9th = 12\n"

    assert read_round_trips(said) == (1, 4)


@pytest.mark.parametrize(
    "read", [read_produced, partial(read_fetched, records=1), read_round_trips]
)
def test_other_words_of_tools_are_a_failure(read: Callable[[str], object]) -> None:
    with pytest.raises(CannotDo, match="no broker"):
        read("no broker is there\n")


def test_every_load_has_a_topic_of_its_own() -> None:
    every = list(loads(1_000_000, is_quick=False))

    assert len({load.topic for load in every}) == len({load.title for load in every}) == len(every)
    assert {load.records for load in every} == {10_000, 1_000}
