"""Brokers for conversations: Kohort and Apache Kafka with the same settings, by profile."""

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
from tests.contract.conversations.conversation import DEFAULT
from tests.contract.conversations.session import DEADLINE_S, BrokerAddress, Session
from tests.wait import wait_until

_COMMON: Final[Mapping[str, object]] = {
    "node.id": 1,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
    "offsets.topic.num.partitions": 4,
    # Records of conversations have old timestamps.
    "log.retention.ms": -1,
}

PROFILES: Final[Mapping[str, Mapping[str, object]]] = {
    DEFAULT: _COMMON,
    "strict": {
        **_COMMON,
        "auto.create.topics.enable": False,
        "delete.topic.enable": False,
        "group.max.size": 2,
        "offset.metadata.max.bytes": 16,
        "message.max.bytes": 2000,
    },
    # With this, groups that have only pending members are deleted quickly.
    "short_retention_check": {
        **_COMMON,
        "offsets.retention.check.interval.ms": 200,
    },
    "initial_delay": {
        **_COMMON,
        "group.initial.rebalance.delay.ms": 1000,
    },
}
"""The settings of both brokers, by profile."""

_KOHORT_ONLY: Final = {
    # Responses do not depend on it, and tests run faster.
    "kohort.durability": "os",
}

_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # a fresh folder is made in it
"""If it exists, a thousand topics are created there without waiting for a disk."""


class BrokerProfiles:
    """Kohort or Kafka brokers, started on first use."""

    def __init__(self, start: Callable[[ExitStack, str], BrokerAddress]) -> None:
        self._start = start
        self._brokers: dict[str, BrokerAddress] = {}
        self._stack = ExitStack()

    def address(self, profile: str) -> BrokerAddress:
        if profile not in self._brokers:
            self._brokers[profile] = self._start(self._stack, profile)
        return self._brokers[profile]

    def close(self) -> None:
        self._stack.close()


def start_kohort(stack: ExitStack, profile: str) -> BrokerAddress:
    directory = stack.enter_context(TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None))
    settings = {**PROFILES[profile], **_KOHORT_ONLY}
    node = stack.enter_context(kohort.Node(data=directory, settings=settings, like_kafka=True))
    host, _, port = node.bootstrap_servers.rpartition(":")
    return BrokerAddress(host, int(port))


def start_kafka(stack: ExitStack, profile: str, directory: Path) -> BrokerAddress:
    settings = {name: _spell(given) for name, given in PROFILES[profile].items()}
    kafka = stack.enter_context(Kafka(directory / profile, settings))
    address = BrokerAddress("127.0.0.1", kafka.port)
    _warm_up(address)
    return address


def _spell(given: object) -> object:
    return str(given).lower() if isinstance(given, bool) else given


def _warm_up(address: BrokerAddress) -> None:
    """Wait until the offsets topic exists and is loaded."""
    # Enough names to cover all partitions.
    names = [GroupId(f"warm-{number}") for number in range(64)]
    with Session(address) as session:

        def is_ready() -> bool:
            found = session.query(
                FindCoordinatorRequest(coordinator_keys=tuple(names))
            ).coordinators
            deleted = session.query(DeleteGroupsRequest(groups_names=tuple(names))).results
            has_producer_ids = (
                session.query(InitProducerIdRequest(transactional_id=None)).error_code == 0
            )
            is_loaded = has_producer_ids and all(
                each.error_code == ErrorCode.GROUP_ID_NOT_FOUND for each in deleted
            )
            return is_loaded and all(each.error_code == ErrorCode.NONE for each in found)

        wait_until(is_ready, DEADLINE_S, "the group coordinator")
