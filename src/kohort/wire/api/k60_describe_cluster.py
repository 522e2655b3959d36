"""DescribeCluster, API key 60: the brokers of a cluster, without its topics (KIP-700).

Version notes:
 0  flexible from the start (KIP-482)
 1  controllers instead of brokers, if requested (KIP-919)
 2  fenced brokers, if requested (KIP-1073)
"""

from kohort.types import BrokerId, Millis
from kohort.wire.schema import array, boolean, int8, int16, int32, message, part, string


@message(api_key=60, versions=(0, 2), flexible_since=0)
class DescribeClusterRequest:
    include_cluster_authorized_operations: bool = boolean()
    # 1 brokers, 2 controllers.
    endpoint_type: int = int8(since=1, default=1)
    include_fenced_brokers: bool = boolean(since=2)


@part
class DescribeClusterBroker:
    broker_id: BrokerId = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable_since=0, default=None)
    is_fenced: bool = boolean(since=2)


@message(api_key=60, versions=(0, 2), flexible_since=0)
class DescribeClusterResponse:
    throttle_time_ms: Millis = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0, default=None)
    endpoint_type: int = int8(since=1, default=1)
    cluster_id: str = string()
    # A Kafka 4 broker returns a random live broker, because clients cannot reach controllers.
    controller_id: BrokerId = int32(default=-1)
    brokers: tuple[DescribeClusterBroker, ...] = array(DescribeClusterBroker)
    # The minimum int32 if not requested.
    cluster_authorized_operations: int = int32(default=-2147483648)
