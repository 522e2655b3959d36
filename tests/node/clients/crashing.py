"""A consumer as a process, to be killed: `python -m tests.node.clients.crashing NAME ...`."""

import sys

from tests.node.clients.aio import Aio
from tests.node.clients.kafka_python import KafkaPython
from tests.node.clients.library import Library, Wanted
from tests.node.clients.librdkafka import Librdkafka
from tests.waiting import pause


def main(name: str, bootstrap_servers: str, topic: str, group: str) -> None:
    libraries: tuple[Library, ...] = (Librdkafka(), KafkaPython(), Aio())
    (library,) = [each for each in libraries if each.name == name]
    member = library.join(bootstrap_servers, Wanted(topic=topic, group=group))
    while True:
        member.poll()
        pause(0.01)


if __name__ == "__main__":
    main(*sys.argv[1:])
