"""ListGroups, API key 16: the groups that this broker coordinates, for tools.

Whoever wants all groups of a cluster asks every broker.

Version notes:
 1  the response tells the throttle time (KIP-124)
 2  the broker answers first and throttles afterwards (KIP-219)
 3  flexible (KIP-482)
 4  states, to filter by and in the response (KIP-518)
 5  types, classic or consumer, to filter by and in the response (KIP-848)
"""

from kohort.types import GroupId, Millis
from kohort.wire.schema import array, int16, int32, message, part, string


@message(api_key=16, versions=(0, 5), flexible_since=3)
class ListGroupsRequest:
    # Empty filters nothing, here and below.
    states_filter: tuple[str, ...] = array("string", since=4)
    types_filter: tuple[str, ...] = array("string", since=5)


@part
class ListedGroup:
    group_id: GroupId = string()
    protocol_type: str = string()
    group_state: str = string(since=4, ignorable=True)
    group_type: str = string(since=5, ignorable=True)


@message(api_key=16, versions=(0, 5), flexible_since=3)
class ListGroupsResponse:
    throttle_time_ms: Millis = int32(since=1, ignorable=True)
    error_code: int = int16()
    groups: tuple[ListedGroup, ...] = array(ListedGroup)
