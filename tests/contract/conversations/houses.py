"""Where conversations are held: pairs of brokers, a Kohort and a Kafka, with the same settings."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import kohort
from kohort.types import ErrorCode, GroupId
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from kohort.wire.api.k22_init_producer_id import InitProducerIdRequest
from kohort.wire.api.k42_delete_groups import DeleteGroupsRequest
from tests.apache.cluster import Kafka
from tests.contract.conversations.conversation import USUAL
from tests.contract.conversations.talking import DEADLINE_S, Side, Talk
from tests.waiting import wait_until

_COMMON: Final[Mapping[str, object]] = {
    "node.id": 1,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "offsets.topic.num.partitions": 4,
    # Records of conversations have times of their own, which would be too old to keep.
    "log.retention.ms": -1,
}

HOUSES: Final[Mapping[str, Mapping[str, object]]] = {
    USUAL: _COMMON,
    "strict": {
        **_COMMON,
        "auto.create.topics.enable": False,
        "delete.topic.enable": False,
        "group.max.size": 2,
        "offset.metadata.max.bytes": 16,
        "message.max.bytes": 2000,
    },
    # Not for groups of promised members only, which have nothing worth keeping.
    "forgetful": {
        **_COMMON,
        "offsets.retention.check.interval.ms": 200,
    },
    "patient": {
        **_COMMON,
        "group.initial.rebalance.delay.ms": 1000,
    },
}
"""By name, the settings that both brokers of a house are run with."""

_KOHORT_ONLY: Final = {
    # Answers are the same, and the disk is not what is tested here.
    "kohort.durability": "os",
}

_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # a fresh folder is made in it
"""Where it exists, a thousand topics are made there without a wait for the disk."""


class Houses:
    """Brokers of one kind, started when they are first needed."""

    def __init__(self, start: Callable[[ExitStack, str], Side]) -> None:
        self._start = start
        self._sides: dict[str, Side] = {}
        self._stack = ExitStack()

    def side(self, house: str) -> Side:
        if house not in self._sides:
            self._sides[house] = self._start(self._stack, house)
        return self._sides[house]

    def close(self) -> None:
        self._stack.close()


def start_kohort(stack: ExitStack, house: str) -> Side:
    directory = stack.enter_context(TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None))
    settings = {**HOUSES[house], **_KOHORT_ONLY}
    node = stack.enter_context(kohort.Node(data=directory, settings=settings))
    host, _, port = node.bootstrap_servers.rpartition(":")
    return Side(host, int(port))


def start_kafka(stack: ExitStack, house: str, directory: Path) -> Side:
    settings = {name: _spell(given) for name, given in HOUSES[house].items()}
    kafka = stack.enter_context(Kafka(directory / house, settings))
    side = Side("127.0.0.1", kafka.port)
    _warm_up(side)
    return side


def _spell(given: object) -> object:
    return str(given).lower() if isinstance(given, bool) else given


def _warm_up(side: Side) -> None:
    """Groups have a topic that is made when it is first needed, and read before it is served."""
    # Enough names for every one of its partitions to have some.
    names = [GroupId(f"warm-{number}") for number in range(64)]
    with Talk(side) as talk:

        def is_ready() -> bool:
            found = talk.peek(FindCoordinatorRequest(coordinator_keys=tuple(names))).coordinators
            told = talk.peek(DeleteGroupsRequest(groups_names=tuple(names))).results
            numbered = talk.peek(InitProducerIdRequest(transactional_id=None)).error_code == 0
            served = numbered and all(
                each.error_code == ErrorCode.GROUP_ID_NOT_FOUND for each in told
            )
            return served and all(each.error_code == ErrorCode.NONE for each in found)

        wait_until(is_ready, DEADLINE_S, "groups to be served")
