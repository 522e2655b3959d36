"""The topic and the services of the shop, and the consumers of each service. Pure.

Session timeout and poll interval are as short as a node allows, so that members time out several
times within two minutes.
"""

from typing import Final

from kohort.types import GroupId, InstanceId, Millis, Topic, value

ORDERS: Final = Topic("orders")
PARTITIONS: Final = 6

HEARTBEAT_MS: Final = Millis(1_000)
POLL_INTERVAL_MS: Final = Millis(6_000)
"""max.poll.interval.ms of all consumers."""
SESSION_MS: Final = Millis(6_000)
"""Session timeout of dynamic members: the shortest that a node accepts."""
STATIC_SESSION_MS: Final = Millis(20_000)
"""Longer than a restart, so that a static member returns without a rebalance."""

WAREHOUSE: Final = GroupId("warehouse")
"""The group of the Spark ingest."""


@value
class Service:
    """A consumer group of the shop."""

    group_id: GroupId
    size: int
    is_static: bool
    strategy: str
    """Its partition.assignment.strategy."""
    session_ms: Millis


@value
class DemoConsumer:
    """A member of a service. Each start is a new process."""

    name: str
    """Its client id, which stays the same after a restart."""
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


def consumers_of(service: Service) -> tuple[DemoConsumer, ...]:
    return tuple(
        DemoConsumer(name=f"{service.group_id}-{number}", service=service)
        for number in range(1, service.size + 1)
    )


CONSUMERS: Final = {
    consumer.name: consumer for service in SERVICES for consumer in consumers_of(service)
}
"""By name."""
