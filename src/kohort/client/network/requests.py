"""A request on its way to a broker: what it is, where it goes, and who waits for the answer."""

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, Final

from kohort.client.member.effects import Broker
from kohort.client.member.events import Loss
from kohort.types import Millis, value
from kohort.wire.api.k01_fetch import FetchRequest
from kohort.wire.api.k02_list_offsets import ListOffsetsRequest
from kohort.wire.api.k03_metadata import MetadataRequest
from kohort.wire.api.k08_offset_commit import OffsetCommitRequest
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from kohort.wire.api.k11_join_group import JoinGroupRequest
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k13_leave_group import LeaveGroupRequest
from kohort.wire.api.k14_sync_group import SyncGroupRequest
from kohort.wire.api.k23_offset_for_leader_epoch import OffsetForLeaderEpochRequest

VERSIONS: Final[dict[type, tuple[int, int]]] = {
    # From 13 on topics go by id, which not every cluster has; 18 only matters to followers.
    FetchRequest: (12, 17),
    ListOffsetsRequest: (5, 7),
    # By name; 12 could ask by id.
    MetadataRequest: (9, 12),
    # Beyond 9, commits go by topic id.
    OffsetCommitRequest: (8, 9),
    OffsetFetchRequest: (8, 9),
    FindCoordinatorRequest: (4, 5),
    JoinGroupRequest: (5, 9),
    HeartbeatRequest: (4, 4),
    LeaveGroupRequest: (4, 5),
    SyncGroupRequest: (5, 5),
    OffsetForLeaderEpochRequest: (3, 4),
}
"""What we say, in which versions: from what Kafka 3.0 speaks to what has a meaning for us."""


class Lane(Enum):
    """A broker answers what comes by one connection in order, so what waits long has its own."""

    CALL = auto()
    JOIN = auto()
    FETCH = auto()


Answer = Any
"""The response of the type that belongs to the request, or a Loss where there is none."""


@value
class Request:
    broker: Broker | None
    """Any one, where none is named."""
    lane: Lane
    body: object
    timeout_ms: Millis
    then: Callable[[Answer, Millis], None]
    """Called exactly once, with the answer and the time."""
    version_max: int | None = None
    """Where the body cannot be said in the newest version."""


def lane_of(body: object) -> Lane:
    if isinstance(body, JoinGroupRequest):
        return Lane.JOIN
    return Lane.FETCH if isinstance(body, FetchRequest) else Lane.CALL


def is_lost(answer: Answer) -> bool:
    return isinstance(answer, Loss)
