"""From the start of the process until the first member has joined a group, in an empty directory.

Each broker is started once before measuring, so that its files are in the page cache and Python's
bytecode is compiled. Formatting Kafka's directory is not counted. Creating the offsets topic is,
because no member can join before.
"""

from collections.abc import Iterator

from bench.beside_kafka.contest import Quantity, Sample, contest, fresh, tell_beside, unstarted
from bench.kit.brokers import BROKERS, Broker
from bench.kit.figures import Figure, at_most
from bench.kit.harness import Effort

WANTED = Quantity(name="process start to first join", unit="s", target=at_most(1 / 20))


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
