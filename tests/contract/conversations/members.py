"""A group member that remembers its member id and generation, as a client does.

It decides nothing: scripts call join, sync, heartbeat, commit and leave, and can change every field
of a request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kohort.types import (
    ErrorCode,
    Generation,
    GroupId,
    InstanceId,
    MemberId,
    Millis,
    Offset,
    Partition,
    Topic,
    Uuid,
)
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k13_leave_group import LeaveGroupRequest, MemberIdentity
from kohort.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kohort.wire.consumer_protocol import Subscription, encode_subscription
from tests.contract.conversations.session import Client, Session

NO_GENERATION = Generation(-1)
UNKNOWN_MEMBER = MemberId("unknown-member")
"""A member id that no broker has issued."""


def protocols(**metadata: bytes) -> tuple[JoinGroupRequestProtocol, ...]:
    return tuple(
        JoinGroupRequestProtocol(name=name, metadata=data) for name, data in metadata.items()
    )


def subscription(*topics: Topic, note: str = "") -> bytes:
    """The subscription of a consumer; the note makes it different from others."""
    return encode_subscription(Subscription(topics=topics, user_data=note.encode()))


Shares = Mapping[MemberId, bytes]
"""The assignments from a leader, by member id."""


class Member:
    """One member of a group, with its own connection."""

    def __init__(
        self,
        session: Session,
        name: str,
        *,
        instance: str | None = None,
        group: GroupId | None = None,
        client_id: str | None = "",
        **fields: Any,
    ) -> None:
        self.client: Client = session.client(name, client_id=client_id)
        self.group = session.group() if group is None else group
        self.member_id = MemberId("")
        self.generation = NO_GENERATION
        self.instance = None if instance is None else InstanceId(instance)
        self.session = session
        self._words = {"protocols": protocols(range=subscription(note=name)), **fields}

    # Joining

    def joining(self, **fields: Any) -> JoinGroupRequest:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=Millis(10_000),
            rebalance_timeout_ms=Millis(10_000),
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type="consumer",
        )
        return replace(request, **{**self._words, **fields})

    def join(self, **fields: Any) -> Any:
        """Join; repeated with the member id if the broker requires one."""
        self.send_join(**fields)
        return self.hear_join()

    def send_join(self, **fields: Any) -> None:
        """Send a join, with the issued member id if there is one."""
        if not self.member_id and self.instance is None and self._knows_ids():
            response = self.ask_join(**fields)
            assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED, response
        self.client.send(self.joining(**fields))

    def ask_join(self, **fields: Any) -> Any:
        """Join once, whatever the response is."""
        self.client.send(self.joining(**fields))
        return self.hear_join()

    def hear_join(self) -> Any:
        answer = self.client.receive()
        if answer.error_code == ErrorCode.NONE:
            self.generation = answer.generation_id
        if answer.member_id:
            self.member_id = answer.member_id
        return answer

    def _knows_ids(self) -> bool:
        return self.session.version_of(JoinGroupRequest) >= 4

    # Syncing

    def syncing(self, assignments: Shares | None = None, **fields: Any) -> Any:
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type="consumer",
            protocol_name="range",
            assignments=tuple(
                SyncGroupRequestAssignment(member_id=member_id, assignment=share)
                for member_id, share in (assignments or {}).items()
            ),
        )
        return replace(request, **fields)

    def sync(self, assignments: Shares | None = None, **fields: Any) -> Any:
        return self.client.ask(self.syncing(assignments, **fields))

    def send_sync(self, assignments: Shares | None = None, **fields: Any) -> None:
        self.client.send(self.syncing(assignments, **fields))

    def receive(self) -> Any:
        return self.client.receive()

    # Heartbeats and leaving

    def beat(self, **fields: Any) -> Any:
        return self.client.ask(self.beating(**fields))

    def beating(self, **fields: Any) -> HeartbeatRequest:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
        )
        return replace(request, **fields)

    def leave(self, *others: MemberIdentity, **fields: Any) -> Any:
        """Leave: as a single member up to version 2, in a list since version 3."""
        return self.client.ask(self.leaving(*others, **fields))

    def leaving(self, *others: MemberIdentity, **fields: Any) -> LeaveGroupRequest:
        if self.session.version_of(LeaveGroupRequest) < 3:
            return replace(
                LeaveGroupRequest(group_id=self.group, member_id=self.member_id), **fields
            )
        myself = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
        return replace(LeaveGroupRequest(group_id=self.group, members=(myself, *others)), **fields)

    # Committing

    def commit(self, *topics: OffsetCommitRequestTopic, **fields: Any) -> Any:
        return self.client.ask(self.committing(*topics, **fields))

    def committing(self, *topics: OffsetCommitRequestTopic, **fields: Any) -> OffsetCommitRequest:
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
            topics=topics,
        )
        return replace(request, **fields)


def offset_of(
    topic: Topic,
    partition: int = 0,
    offset: int = 7,
    *,
    topic_id: Uuid,
    metadata: str | None = "",
    leader_epoch: int = -1,
) -> OffsetCommitRequestTopic:
    """An offset to commit, by topic name and id; each version encodes one of them."""
    partition_data = OffsetCommitRequestPartition(
        partition_index=Partition(partition),
        committed_offset=Offset(offset),
        committed_metadata=metadata,
        committed_leader_epoch=leader_epoch,
    )
    return OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=(partition_data,))


def together(*topics: OffsetCommitRequestTopic) -> OffsetCommitRequestTopic:
    """Offsets of one topic, in one request."""
    partitions = tuple(each for topic in topics for each in topic.partitions)
    return replace(topics[0], partitions=partitions)


def gather(members: Sequence[Member], shares: bytes = b"share of ") -> None:
    """Form a stable group with the first member as leader; all requests are recorded."""
    assemble(members)
    leader, *others = members
    everything = {each.member_id: shares + each.client.name.encode() for each in members}
    leader.sync(everything)
    for member in others:
        member.sync()


def assemble(members: Sequence[Member]) -> None:
    """Join all members with the first one as leader; the group is then completing the rebalance."""
    leader, *others = members
    leader.join()
    if others:
        rejoin(leader, others)


def rejoin(leader: Member, others: Sequence[Member], **fields: Any) -> None:
    """Other members join, then the leader rejoins, which completes the joins."""
    session = leader.session
    for count, member in enumerate(others, start=2):
        member.send_join()
        session.wait_for_group(leader.group, state="PreparingRebalance", members=count)
    leader.send_join(**fields)
    for member in (leader, *others):
        member.hear_join()
