"""DeleteGroups, API key 42: deletes groups with their committed offsets (KIP-229).

A group with members is not deleted; the error is NON_EMPTY_GROUP.

Version notes:
 1  the broker responds before it throttles (KIP-219)
 2  flexible (KIP-482)
"""

from kohort.types import GroupId, Millis
from kohort.wire.schema import array, int16, int32, message, part, string


@message(api_key=42, versions=(0, 2), flexible_since=2)
class DeleteGroupsRequest:
    groups_names: tuple[GroupId, ...] = array("string")


@part
class DeletableGroupResult:
    group_id: GroupId = string()
    error_code: int = int16()


@message(api_key=42, versions=(0, 2), flexible_since=2)
class DeleteGroupsResponse:
    throttle_time_ms: Millis = int32()
    results: tuple[DeletableGroupResult, ...] = array(DeletableGroupResult)
