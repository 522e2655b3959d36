"""Requests of scripted members, encoded once and sent many times with other numbers.

Pure: from names and numbers to bytes, and the position of a number in these bytes. Versions are
those that Kafka's classic consumer uses, as long as topics have names.
"""

from collections.abc import Callable, Iterable, Sequence
from struct import Struct
from typing import Final

from kohort.types import Generation, GroupId, MemberId, Millis, Offset, Partition, Topic
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kohort.wire.api.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kohort.wire.consumer_protocol import (
    Assignment,
    Subscription,
    TopicPartitions,
    encode_assignment,
    encode_subscription,
)
from kohort.wire.envelope import encode_request

JOIN_KEY, JOIN_VERSION = 11, 9
SYNC_VERSION: Final = 5
HEARTBEAT_VERSION: Final = 4
COMMIT_KEY, COMMIT_VERSION = 8, 9
FETCH_KEY, FETCH_VERSION = 9, 8

CLIENT_ID: Final = "bench"
PROTOCOL_TYPE: Final = "consumer"
PROTOCOL: Final = "range"

SESSION_MS: Final = Millis(1_800_000)
"""The longest session that Kafka allows by default, since these members send few heartbeats."""
REBALANCE_MS: Final = Millis(300_000)

INT32: Final = Struct(">i")
INT16: Final = Struct(">h")

CORRELATION_AT: Final = 8
"""Position in a request: after length, key and version."""
ERROR_AT: Final = 13
"""In an answer to a join, a sync or a heartbeat of these versions: behind length, correlation id,
no tags and the throttle time."""
GENERATION_AT: Final = 15
"""Position in a join response: after the error code."""

_MARK: Final = 0x5EED_0BAD
"""A generation that occurs nowhere else in a frame."""


def subscription(*topics: str) -> bytes:
    return encode_subscription(Subscription(topics=tuple(map(Topic, topics))))


def assignment(topic: str, partitions: Iterable[int]) -> bytes:
    named = TopicPartitions(topic=Topic(topic), partitions=tuple(map(Partition, partitions)))
    return encode_assignment(Assignment(assigned_partitions=(named,)))


def join(group: str, member_id: str, metadata: bytes) -> bytes:
    request = JoinGroupRequest(
        group_id=GroupId(group),
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=REBALANCE_MS,
        member_id=MemberId(member_id),
        protocol_type=PROTOCOL_TYPE,
        protocols=(JoinGroupRequestProtocol(name=PROTOCOL, metadata=metadata),),
    )
    return encode_request(request, JOIN_VERSION, 1, CLIENT_ID)


def sync(group: str, member_id: str, generation: int, shares: dict[str, bytes]) -> bytes:
    """With all assignments for the leader, with none for other members."""
    request = SyncGroupRequest(
        group_id=GroupId(group),
        generation_id=Generation(generation),
        member_id=MemberId(member_id),
        protocol_type=PROTOCOL_TYPE,
        protocol_name=PROTOCOL,
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=MemberId(each), assignment=share)
            for each, share in shares.items()
        ),
    )
    return encode_request(request, SYNC_VERSION, 1, CLIENT_ID)


def heartbeat(group: str, member_id: str, generation: int) -> bytes:
    request = HeartbeatRequest(
        group_id=GroupId(group),
        generation_id=Generation(generation),
        member_id=MemberId(member_id),
    )
    return encode_request(request, HEARTBEAT_VERSION, 1, CLIENT_ID)


def commit(
    group: str, member_id: str, generation: int, *, topic: str, partitions: int, offset: int
) -> bytes:
    """The same offset for each partition of the topic."""
    request = OffsetCommitRequest(
        group_id=GroupId(group),
        generation_id_or_member_epoch=Generation(generation),
        member_id=MemberId(member_id),
        topics=(
            OffsetCommitRequestTopic(
                name=Topic(topic),
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=Partition(each),
                        committed_offset=Offset(offset),
                        committed_metadata="",
                    )
                    for each in range(partitions)
                ),
            ),
        ),
    )
    return encode_request(request, COMMIT_VERSION, 1, CLIENT_ID)


def fetch_offsets(groups: Sequence[str]) -> bytes:
    """All offsets of all these groups, in one request."""
    return encode_request(offsets_wanted(groups), FETCH_VERSION, 1, CLIENT_ID)


def offsets_wanted(groups: Sequence[str]) -> OffsetFetchRequest:
    wanted = tuple(OffsetFetchRequestGroup(group_id=GroupId(each), topics=None) for each in groups)
    return OffsetFetchRequest(groups=wanted)


class Form:
    """A frame whose generation is filled in later."""

    def __init__(self, spell: Callable[[int], bytes]) -> None:
        frame = spell(_MARK)
        self._at = find_number(frame, _MARK)
        self._frame = bytearray(frame)

    def fill(self, generation: int) -> bytearray:
        """The returned frame is valid until the next call."""
        INT32.pack_into(self._frame, self._at, generation)
        return self._frame


def find_number(frame: bytes, number: int) -> int:
    """The position of a four-byte number that occurs once."""
    packed = INT32.pack(number)
    at = frame.find(packed)
    if at < 0 or frame.find(packed, at + 1) >= 0:
        raise ValueError(f"{number} is not in the frame exactly once")
    return at


def error_of(answer: bytes | bytearray | memoryview) -> int:
    """The error code of a join, sync or heartbeat response."""
    found: int = INT16.unpack_from(answer, ERROR_AT)[0]
    return found


def generation_of(answer: bytes | bytearray | memoryview) -> int:
    """The generation of a successful join response."""
    found: int = INT32.unpack_from(answer, GENERATION_AT)[0]
    return found
