"""Killed and started again: how long until every group's offsets are told again, as last committed.

The log holds so many committed offsets, ten in each commit, spread over the groups. Nothing is
synced: a process that is killed leaves its bytes to the system.
"""

import time
from collections.abc import Iterator

from bench.beside_kafka.contest import Quantity, Sample, contest, fresh, tell_beside
from bench.kit import spelling
from bench.kit.brokers import BROKERS, Broker, CannotDo
from bench.kit.client import Client
from bench.kit.driving import Lane, Seat, drive, form_once
from bench.kit.figures import Figure, at_most
from bench.kit.harness import Effort
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
    """The last commit of every group is known."""
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
    return spelling.commit(
        seat.group,
        seat.member_id,
        seat.generation,
        topic=TOPIC,
        partitions=PARTITIONS,
        offset=offset,
    )


def seconds_to_return(broker: Broker, groups: list[str]) -> float:
    """From the signal on; starting it again is the first thing that is done about it."""

    def tells_all(client: Client) -> bool:
        # One first: to ask for all of them over and over would keep the broker from loading them.
        return tells(client, groups[-1:]) and tells(client, groups)

    began = time.perf_counter()
    broker.kill()
    broker.start()
    broker.wait_for(tells_all, f"the offsets of {len(groups)} groups")
    return time.perf_counter() - began


def tells(client: Client, groups: list[str]) -> bool:
    """Whether of each of these groups the last commit is told."""
    answer = client.ask_raw(spelling.fetch_offsets(groups))
    told = decode_response(answer, spelling.FETCH_KEY, spelling.FETCH_VERSION)[1].groups
    if len(told) != len(groups):
        raise CannotDo(f"{len(told)} groups are told of {len(groups)}")
    return all(not group.error_code and has_last(group.topics) for group in told)


def has_last(topics: tuple[OffsetFetchResponseTopics, ...]) -> bool:
    offsets = [each.committed_offset for topic in topics for each in topic.partitions]
    return offsets == [LAST] * PARTITIONS


if __name__ == "__main__":
    tell_beside(__doc__, measure)
