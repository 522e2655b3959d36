"""CPU time of one sticky assignment, compared with kafka-python's, and how it grows with the group.

Both get the same groups and the same previous assignments. kafka-python is stopped at a time limit,
and the limit then counts as its time. The cost per partition is compared with that of the smallest
group: if the ratio stays low as groups grow, the cost is linear.
"""

import random
import resource
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import attrgetter
from types import SimpleNamespace
from typing import Final

from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.coordinator.assignors.sticky.user_data import StickyAssignorUserData

from bench.kit.harness import Effort, Result, cpu_seconds, tell
from kohort.assignors import STICKY, Assignment, Subscriber
from kohort.types import Generation, MemberId, Topic, value

SIZES: Final = (100, 300, 1_000, 2_000)
PARTITIONS_PER_MEMBER: Final = 10
TOPICS: Final = 50
"""Fixed, so that the input grows no faster than the group."""
TOPICS_WANTED: Final = 5
"""Topics per member, where subscriptions are unequal."""

SHAPES: Final = ("equal", "unequal")
CASES: Final = ("fresh", "one leaves", "one joins")

PEER_SECONDS_MAX: Final = 15
GROWTH_MAX: Final = 2.0
ROUNDS_MAX: Final = 9
"""The large groups take their time; the harness's rounds are meant for microseconds."""


@value
class Question:
    """The input of the leader: subscriptions, and for most members previously owned partitions."""

    partitions: dict[Topic, int]
    wanted: dict[MemberId, frozenset[Topic]]
    had: Assignment


def ask(shape: str, members: int, case: str) -> Question:
    die = random.Random(members)  # noqa: S311  # groups, no secrets
    topics = [Topic(f"topic-{number:02}") for number in range(TOPICS)]
    partitions = dict.fromkeys(topics, members * PARTITIONS_PER_MEMBER // TOPICS)
    # One more than the group has: the member that joins later.
    wanted = {
        MemberId(f"consumer-{number:05}"): frozenset(
            topics if shape == "equal" else die.sample(topics, TOPICS_WANTED)
        )
        for number in range(members + 1)
    }
    newcomer = wanted.popitem()
    fresh = Question(partitions=partitions, wanted=dict(wanted), had={})
    if case == "fresh":
        return fresh
    had = STICKY.assign(partitions, subscribers(fresh))
    if case == "one leaves":
        leaver = next(iter(wanted))
        del wanted[leaver], had[leaver]
    else:
        wanted.update([newcomer])
    return Question(partitions=partitions, wanted=wanted, had=had)


def subscribers(question: Question) -> list[Subscriber]:
    return [
        Subscriber(
            member_id=member_id,
            topics=topics,
            user_data=STICKY.user_data(question.had[member_id], Generation(1))
            if member_id in question.had
            else None,
        )
        for member_id, topics in question.wanted.items()
    ]


def ours(question: Question) -> Callable[[], object]:
    told = subscribers(question)
    return lambda: STICKY.assign(question.partitions, told)


def theirs(question: Question) -> Callable[[], object]:
    cluster = SimpleNamespace(
        topics=lambda: set(question.partitions),
        partitions_for_topic=lambda topic: set(range(question.partitions[topic])),
    )
    told = [
        SimpleNamespace(
            member_id=member_id,
            group_instance_id=None,
            metadata=SimpleNamespace(
                topics=sorted(topics), user_data=previous(question, member_id)
            ),
        )
        for member_id, topics in question.wanted.items()
    ]
    return lambda: StickyPartitionAssignor().assign(cluster, told)


def previous(question: Question, member_id: MemberId) -> object:
    """User data in the format that kafka-python reads fastest. It differs slightly from Kafka's."""
    if member_id not in question.had:
        return b""
    by_topic = groupby(question.had[member_id], key=attrgetter("topic"))
    named = [(topic, [each.partition for each in partitions]) for topic, partitions in by_topic]
    return StickyAssignorUserData(named, 1)


def median_ms(work: Callable[[], object], rounds: int) -> float:
    return statistics.median(cpu_seconds(work, 1) for _ in range(rounds)) * 1e3


def find_peer_ms(shape: str, members: int, case: str) -> float | None:
    """Run in a separate process, which is stopped at the time limit; then None."""
    command = [sys.executable, "-m", "bench.assignors", "--peer", shape, str(members), case]
    finished = subprocess.run(command, stdout=subprocess.PIPE, check=False, text=True)
    if finished.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return None
    finished.check_returncode()
    return float(finished.stdout)


def tell_peer_ms(shape: str, members: int, case: str) -> None:
    work = theirs(ask(shape, members, case))
    limit = round(time.process_time()) + PEER_SECONDS_MAX
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    sys.stdout.write(f"{median_ms(work, rounds=1)}\n")


def measure(effort: Effort) -> Iterator[Result]:
    costs: dict[tuple[str, str, int], float] = {}
    for shape in SHAPES:
        for case in CASES:
            was_stopped = False
            for members in effort.pick(SIZES, SIZES[:1]):
                work = ours(ask(shape, members, case))
                cost = costs[shape, case, members] = median_ms(work, min(effort.rounds, ROUNDS_MAX))
                # Who did not finish will not finish more.
                peer = None if was_stopped else find_peer_ms(shape, members, case)
                was_stopped = peer is None
                metric = f"{shape}, {case}, {members:_} x {members * PARTITIONS_PER_MEMBER:_}"
                yield Result(
                    metric=metric + (", peer stopped" if was_stopped else ""),
                    kohort=cost,
                    peer=peer or PEER_SECONDS_MAX * 1e3,
                    target=1.0,
                    unit="ms",
                )
    yield from growth(costs)


def growth(costs: dict[tuple[str, str, int], float]) -> Iterator[Result]:
    for (shape, case, members), cost in costs.items():
        smallest = SIZES[0]
        if members > smallest:
            yield Result(
                metric=f"{shape}, {case}, {members:_}: per partition, vs {smallest}",
                kohort=cost * 1e3 / (members * PARTITIONS_PER_MEMBER),
                peer=costs[shape, case, smallest] * 1e3 / (smallest * PARTITIONS_PER_MEMBER),
                target=GROWTH_MAX,
            )


if __name__ == "__main__":
    if "--peer" in sys.argv:
        shape, members, case = sys.argv[-3:]
        tell_peer_ms(shape, int(members), case)
    else:
        tell(__doc__ or "", "kafka-python", measure)
