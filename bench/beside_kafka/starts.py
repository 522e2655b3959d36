"""From a process's being spawned to the first member's having joined a group, in an empty folder.

Each is started once before time is taken: the system has its files in memory, and Python what it
has compiled. Formatting the folder, which Kafka wants once, is not counted. Making its topic for
groups is: until it is there nobody can join.
"""

from collections.abc import Iterator

from bench.beside_kafka.contest import Quantity, Sample, contest, fresh, tell_beside, unstarted
from bench.kit.brokers import BROKERS, Broker
from bench.kit.figures import Figure, at_most
from bench.kit.harness import Effort

WANTED = Quantity(name="spawn to first join", unit="s", target=at_most(1 / 20))


def measure(effort: Effort) -> Iterator[Figure]:
    yield from contest(BROKERS, effort.rounds, (WANTED,), start, warm)


def warm(kind: type[Broker]) -> None:
    with fresh(kind):
        pass


def start(kind: type[Broker]) -> Iterator[Sample]:
    with unstarted(kind) as broker:
        yield Sample(quantity=WANTED.name, amount=broker.start())


if __name__ == "__main__":
    tell_beside(__doc__, measure)
