"""FindCoordinator, API key 10: the broker that coordinates a group or a transactional id.

A member sends it to any broker before it joins, and again after NOT_COORDINATOR.

Version notes:
 1  transactional ids too (KIP-98); an error message; the response has the throttle time (KIP-124)
 2  the broker responds before it throttles (KIP-219)
 3  flexible (KIP-482)
 4  several keys of one type per request (KIP-699)
 5  the error TRANSACTION_ABORTABLE (KIP-890)
 6  the coordinators of share groups (KIP-932)
"""

from kohort.types import BrokerId, Millis
from kohort.wire.schema import array, int8, int16, int32, message, part, string


@message(api_key=10, versions=(0, 6), flexible_since=3)
class FindCoordinatorRequest:
    key: str = string(until=3)
    # 0 a group, 1 a transactional id, 2 a share partition as group:topic id:partition.
    key_type: int = int8(since=1)
    coordinator_keys: tuple[str, ...] = array("string", since=4)


@part
class Coordinator:
    key: str = string(since=4)
    # -1 with an error; then the host is empty and the port is -1.
    node_id: BrokerId = int32(since=4)
    host: str = string(since=4)
    port: int = int32(since=4)
    error_code: int = int16(since=4)
    error_message: str | None = string(since=4, nullable_since=4, ignorable=True)


@message(api_key=10, versions=(0, 6), flexible_since=3)
class FindCoordinatorResponse:
    throttle_time_ms: Millis = int32(since=1, ignorable=True)
    error_code: int = int16(until=3)
    error_message: str | None = string(since=1, until=3, nullable_since=1, ignorable=True)
    node_id: BrokerId = int32(until=3)
    host: str = string(until=3)
    port: int = int32(until=3)
    coordinators: tuple[Coordinator, ...] = array(Coordinator, since=4)
