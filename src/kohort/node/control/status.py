"""The operation `status`: the addresses of the node, and whether its groups are loaded."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kohort.node.server import Server


async def read_status(server: "Server", _: object) -> dict[str, Any]:
    broker = server.broker
    return {
        "bootstrap_servers": str(broker.address),
        "cluster_id": broker.cluster_id,
        "coordinator": broker.coordinator.phase.value,
        "groups": len(broker.coordinator.groups),
    }
