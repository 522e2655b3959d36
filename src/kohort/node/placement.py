"""Where partitions may be placed: here. Whoever asks for another place is told."""

from kohort.log.errors import Refused
from kohort.types import BrokerId, ErrorCode


def check_replicas(broker_ids: tuple[BrokerId, ...], node_id: BrokerId) -> None:
    """A partition placed by hand must be on this node and on no other."""
    if broker_ids != (node_id,):
        reason = f"replicas {list(broker_ids)}; there is only node {node_id}"
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)


def check_replication(replication_factor: int) -> None:
    """1, or -1 for the default, which is 1."""
    if replication_factor not in (1, -1):
        reason = f"replication factor {replication_factor}; there is only one node, so it is 1"
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, reason)
