"""ListGroups, API key 16: the groups that this broker coordinates, for tools.

For all groups of a cluster, send it to every broker.

Version notes:
 1  the response has the throttle time (KIP-124)
 2  the broker responds before it throttles (KIP-219)
 3  flexible (KIP-482)
 4  group states, as a filter and in the response (KIP-518)
 5  group types, classic or consumer, as a filter and in the response (KIP-848)
"""

from kohort.types import GroupId, Millis
from kohort.wire.schema import array, int16, int32, message, part, string


@message(api_key=16, versions=(0, 5), flexible_since=3)
class ListGroupsRequest:
    # Empty for no filter, here and below.
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
