"""Restart after kill -9: time until the last committed offsets of every group can be fetched.

The log holds the given number of committed offsets, ten per commit, spread over the groups. Nothing
is synced: the kernel keeps the bytes of a killed process.
"""

import time
from collections.abc import Iterator

from bench.beside_kafka.contest import Quantity, Sample, contest, fresh, tell_beside
from bench.kit import request_frames
from bench.kit.brokers import BROKERS, Broker, CannotDo
from bench.kit.client import Client
from bench.kit.figures import Figure, at_most
from bench.kit.harness import Effort
from bench.kit.load_driver import Lane, Seat, drive, form_once
from kohort.wire.api.k09_offset_fetch import OffsetFetchResponseTopics
from kohort.wire.envelope import decode_response

COMMITS, QUICK_COMMITS = (10_000, 100_000, 1_000_000), (5_000,)
GROUPS, QUICK_GROUPS = 1_000, 50
LANES = 50
TOPIC, PARTITIONS = "orders", 10
LAST = 123_456


def measure(effort: Effort) -> Iterator[Figure]:
    groups = [f"group-{number}" for number in range(effort.pick(GROUPS, QUICK_GROUPS))]
    for count in effort.pick(COMMITS, QUICK_COMMITS):
        name = f"kill to served, {count:,} commits in the log"
        wanted = Quantity(name=name, unit="s", target=at_most(0.5))

        def restart(kind: type[Broker], name: str = name, commits: int = count) -> Iterator[Sample]:
            with fresh(kind) as broker:
                fill(broker, groups, commits)
                yield Sample(quantity=name, amount=seconds_to_return(broker, groups))

        yield from contest(BROKERS, effort.rounds, (wanted,), restart)


def fill(broker: Broker, groups: list[str], commits: int) -> None:
    """Commit for every group, and return the last commit of each."""
    broker.create_topic(TOPIC, PARTITIONS)
    seats = form_once(broker, groups, 1)
    lanes = [
        Lane(frames=[spell(seat, offset) for offset in (1, 2) for seat in seats[first::LANES]])
        for first in range(LANES)
    ]
    drive(broker, lanes, answers=commits // PARTITIONS, is_free=True)
    with Client(broker.port) as client:
        for seat in seats:
            client.ask_raw(spell(seat, LAST))


def spell(seat: Seat, offset: int) -> bytes:
    return request_frames.commit(
        seat.group,
        seat.member_id,
        seat.generation,
        topic=TOPIC,
        partitions=PARTITIONS,
        offset=offset,
    )


def seconds_to_return(broker: Broker, groups: list[str]) -> float:
    """Seconds from the signal, including the start of the new process."""

    def tells_all(client: Client) -> bool:
        # One first: to ask for all of them over and over would keep the broker from loading them.
        return tells(client, groups[-1:]) and tells(client, groups)

    began = time.perf_counter()
    broker.kill()
    broker.start()
    broker.wait_for(tells_all, f"the offsets of {len(groups)} groups")
    return time.perf_counter() - began


def tells(client: Client, groups: list[str]) -> bool:
    """Whether the broker returns the last commit of each of these groups."""
    answer = client.ask_raw(request_frames.fetch_offsets(groups))
    told = decode_response(answer, request_frames.FETCH_KEY, request_frames.FETCH_VERSION)[1].groups
    if len(told) != len(groups):
        raise CannotDo(f"{len(told)} groups are told of {len(groups)}")
    return all(not group.error_code and has_last(group.topics) for group in told)


def has_last(topics: tuple[OffsetFetchResponseTopics, ...]) -> bool:
    offsets = [each.committed_offset for topic in topics for each in topic.partitions]
    return offsets == [LAST] * PARTITIONS


if __name__ == "__main__":
    tell_beside(__doc__, measure)
