"""DescribeCluster: the one broker and its address."""

from kohort.node.authorized_operations import CLUSTER_OPERATIONS, NOT_REQUESTED
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.types import ErrorCode, Millis
from kohort.wire.api.k60_describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS, _CONTROLLERS = 1, 2


def handle(broker: Broker, request: Request, _: Millis) -> DescribeClusterResponse:
    body: DescribeClusterRequest = request.body
    if body.endpoint_type != _BROKERS:
        return _refuse(body.endpoint_type)
    is_asked = body.include_cluster_authorized_operations
    return DescribeClusterResponse(
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        brokers=(
            DescribeClusterBroker(
                broker_id=broker.node_id, host=broker.address.host, port=broker.address.port
            ),
        ),
        cluster_authorized_operations=CLUSTER_OPERATIONS if is_asked else NOT_REQUESTED,
    )


def _refuse(endpoint_type: int) -> DescribeClusterResponse:
    error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
    if endpoint_type == _CONTROLLERS:
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
    return DescribeClusterResponse(
        error_code=error,
        error_message=f"endpoint type {endpoint_type} is not supported, only brokers",
    )
