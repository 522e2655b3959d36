"""DescribeCluster: this node, its address and nothing else."""

from kohort.node.broker import Broker
from kohort.node.operations import CLUSTER_OPERATIONS, NOT_ASKED
from kohort.node.request import Request
from kohort.types import ErrorCode, Millis
from kohort.wire.api.k60_describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS, _CONTROLLERS = 1, 2


def handle(broker: Broker, request: Request, now: Millis) -> None:  # noqa: ARG001
    body: DescribeClusterRequest = request.body
    if body.endpoint_type != _BROKERS:
        request.answer(_refuse(body.endpoint_type))
        return
    is_asked = body.include_cluster_authorized_operations
    request.answer(
        DescribeClusterResponse(
            cluster_id=broker.cluster_id,
            controller_id=broker.node_id,
            brokers=(
                DescribeClusterBroker(
                    broker_id=broker.node_id, host=broker.address.host, port=broker.address.port
                ),
            ),
            cluster_authorized_operations=CLUSTER_OPERATIONS if is_asked else NOT_ASKED,
        )
    )


def _refuse(endpoint_type: int) -> DescribeClusterResponse:
    error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
    if endpoint_type == _CONTROLLERS:
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
    return DescribeClusterResponse(
        error_code=error, error_message=f"brokers are here, no endpoints of type {endpoint_type}"
    )
