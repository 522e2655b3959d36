"""Who takes part: the shop's topic, its services, and the programs that each of them runs. Pure.

Sessions and poll intervals are as short as a node allows, so that a run of two minutes sees a
program given up for dead more than once.
"""

from typing import Final

from kohort.types import GroupId, InstanceId, Millis, Topic, value

ORDERS: Final = Topic("orders")
PARTITIONS: Final = 6

HEARTBEAT_MS: Final = Millis(1_000)
POLL_MS: Final = Millis(6_000)
"""A program that does not poll for so long is out."""
SESSION_MS: Final = Millis(6_000)
"""A program that is silent for so long is out; the shortest that a node lets members ask for."""
STATIC_SESSION_MS: Final = Millis(20_000)
"""Longer than any restart: that is what lets a static member come back unnoticed."""

WAREHOUSE: Final = GroupId("warehouse")
"""Spark's: it keeps all orders as Parquet."""


@value
class Service:
    """A consumer group of the shop."""

    group_id: GroupId
    size: int
    is_static: bool
    strategy: str
    """How its leader deals out partitions."""
    session_ms: Millis


@value
class Program:
    """One member of a service; a process each time it is started."""

    name: str
    """Its client id, which stays when it is started again."""
    service: Service

    @property
    def instance_id(self) -> InstanceId | None:
        return InstanceId(self.name) if self.service.is_static else None


CHECKOUT: Final = Service(
    group_id=GroupId("checkout"),
    size=4,
    is_static=False,
    strategy="range",
    session_ms=SESSION_MS,
)
BILLING: Final = Service(
    group_id=GroupId("billing"),
    size=3,
    is_static=True,
    strategy="cooperative-sticky",
    session_ms=STATIC_SESSION_MS,
)
SERVICES: Final = (CHECKOUT, BILLING)


def programs_of(service: Service) -> tuple[Program, ...]:
    return tuple(
        Program(name=f"{service.group_id}-{number}", service=service)
        for number in range(1, service.size + 1)
    )


PROGRAMS: Final = {
    program.name: program for service in SERVICES for program in programs_of(service)
}
