"""A speaker in a group, who remembers what it was told, as a client does.

It decides nothing: a script says when it joins, syncs, beats, commits and leaves. What it says can
be changed word by word.
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
from kohort.wire.embedded import Subscription, encode_subscription
from tests.contract.conversations.talking import Speaker, Talk

NO_GENERATION = Generation(-1)
NOBODY = MemberId("nobody")
"""An id that was never given to anyone."""


def protocols(**metadata: bytes) -> tuple[JoinGroupRequestProtocol, ...]:
    return tuple(
        JoinGroupRequestProtocol(name=name, metadata=data) for name, data in metadata.items()
    )


def subscription(*topics: Topic, note: str = "") -> bytes:
    """What a consumer subscribes to; the note makes it differ from others."""
    return encode_subscription(Subscription(topics=topics, user_data=note.encode()))


Shares = Mapping[MemberId, bytes]
"""What a leader gives to whom."""


class Member:
    """One member of one group, on a connection of its own."""

    def __init__(
        self,
        talk: Talk,
        name: str,
        *,
        instance: str | None = None,
        group: GroupId | None = None,
        client_id: str | None = "",
        **words: Any,
    ) -> None:
        self.speaker: Speaker = talk.speaker(name, client_id=client_id)
        self.group = talk.group() if group is None else group
        self.member_id = MemberId("")
        self.generation = NO_GENERATION
        self.instance = None if instance is None else InstanceId(instance)
        self.talk = talk
        self._words = {"protocols": protocols(range=subscription(note=name)), **words}

    # Joining

    def joining(self, **words: Any) -> JoinGroupRequest:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=Millis(10_000),
            rebalance_timeout_ms=Millis(10_000),
            member_id=self.member_id,
            group_instance_id=self.instance,
            protocol_type="consumer",
        )
        return replace(request, **{**self._words, **words})

    def join(self, **words: Any) -> Any:
        """Join, with a second try if an id is given first."""
        self.send_join(**words)
        return self.hear_join()

    def send_join(self, **words: Any) -> None:
        """Ask to join; where an id is given first, with that."""
        if not self.member_id and self.instance is None and self._knows_ids():
            told = self.ask_join(**words)
            assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED, told
        self.speaker.send(self.joining(**words))

    def ask_join(self, **words: Any) -> Any:
        """Join once, whatever is answered."""
        self.speaker.send(self.joining(**words))
        return self.hear_join()

    def hear_join(self) -> Any:
        answer = self.speaker.hear()
        if answer.error_code == ErrorCode.NONE:
            self.generation = answer.generation_id
        if answer.member_id:
            self.member_id = answer.member_id
        return answer

    def _knows_ids(self) -> bool:
        return self.talk.version_of(JoinGroupRequest) >= 4

    # Syncing

    def syncing(self, assignments: Shares | None = None, **words: Any) -> Any:
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
        return replace(request, **words)

    def sync(self, assignments: Shares | None = None, **words: Any) -> Any:
        return self.speaker.ask(self.syncing(assignments, **words))

    def send_sync(self, assignments: Shares | None = None, **words: Any) -> None:
        self.speaker.send(self.syncing(assignments, **words))

    def hear(self) -> Any:
        return self.speaker.hear()

    # Staying and going

    def beat(self, **words: Any) -> Any:
        return self.speaker.ask(self.beating(**words))

    def beating(self, **words: Any) -> HeartbeatRequest:
        request = HeartbeatRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
        )
        return replace(request, **words)

    def leave(self, *others: MemberIdentity, **words: Any) -> Any:
        """Leave, in the way of the version: alone until 2, since then in a list."""
        return self.speaker.ask(self.leaving(*others, **words))

    def leaving(self, *others: MemberIdentity, **words: Any) -> LeaveGroupRequest:
        if self.talk.version_of(LeaveGroupRequest) < 3:
            return replace(
                LeaveGroupRequest(group_id=self.group, member_id=self.member_id), **words
            )
        myself = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
        return replace(LeaveGroupRequest(group_id=self.group, members=(myself, *others)), **words)

    # Committing

    def commit(self, *topics: OffsetCommitRequestTopic, **words: Any) -> Any:
        return self.speaker.ask(self.committing(*topics, **words))

    def committing(self, *topics: OffsetCommitRequestTopic, **words: Any) -> OffsetCommitRequest:
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance,
            topics=topics,
        )
        return replace(request, **words)


def offset_of(
    topic: Topic,
    partition: int = 0,
    offset: int = 7,
    *,
    topic_id: Uuid,
    metadata: str | None = "",
    leader_epoch: int = -1,
) -> OffsetCommitRequestTopic:
    """An offset to commit, by name and by id: a version takes the one that it knows."""
    told = OffsetCommitRequestPartition(
        partition_index=Partition(partition),
        committed_offset=Offset(offset),
        committed_metadata=metadata,
        committed_leader_epoch=leader_epoch,
    )
    return OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=(told,))


def together(*topics: OffsetCommitRequestTopic) -> OffsetCommitRequestTopic:
    """Offsets of one topic, as one."""
    partitions = tuple(each for topic in topics for each in topic.partitions)
    return replace(topics[0], partitions=partitions)


def gather(members: Sequence[Member], shares: bytes = b"share of ") -> None:
    """Make a stable group of them, the first one its leader; all of it is part of the talk."""
    assemble(members)
    leader, *others = members
    everything = {each.member_id: shares + each.speaker.name.encode() for each in members}
    leader.sync(everything)
    for member in others:
        member.sync()


def assemble(members: Sequence[Member]) -> None:
    """Get them into one generation, the first one its leader, and leave it waiting for syncs."""
    leader, *others = members
    leader.join()
    if others:
        rejoin(leader, others)


def rejoin(leader: Member, others: Sequence[Member], **words: Any) -> None:
    """Others join, then the leader again, which ends the waiting."""
    talk = leader.talk
    for count, member in enumerate(others, start=2):
        member.send_join()
        talk.wait_for_group(leader.group, state="PreparingRebalance", members=count)
    leader.send_join(**words)
    for member in (leader, *others):
        member.hear_join()
