"""What can go wrong for a program that consumes, each with what to do about it.

All are ConsumerErrors. The ones that a program may want to tell apart have a class of their own.
"""

from typing import ClassVar

from kohort.client.topic_partition import TopicPartition
from kohort.types import ErrorCode, GroupId, InstanceId, Offset, Topic


class ConsumerError(Exception):
    """Something a program should hear of."""

    is_retriable: ClassVar[bool] = False
    """Whether the same call may well succeed a moment later."""


class BadOption(ConsumerError, ValueError):
    """An option that does not exist, has a bad value or contradicts another."""


class WrongUse(ConsumerError, RuntimeError):
    """A call that cannot be made now: after close, from two threads, without a group."""


class Unreachable(ConsumerError):
    """No broker could be reached, or none answered in time."""

    is_retriable = True


class UnsupportedBroker(ConsumerError):
    """The broker does not speak what is needed; names the API and the versions it has."""


class CommitFailed(ConsumerError):
    """The commit was not kept, and will not be: the group has gone on without this member."""


class RebalanceUnderWay(ConsumerError):
    """The commit was not kept because the group is rebalancing; poll, and it can be tried again."""

    is_retriable = True


class CommitNotKept(ConsumerError):
    """The coordinator could not keep the commit in time; it may be tried again."""

    is_retriable = True


class OffsetNotValid(ConsumerError):
    """There is no position, or none within the partition, and no policy says where to begin."""


class UnknownTopic(ConsumerError):
    """The topic does not exist, and was not created when it was asked for."""

    def __init__(self, topic: Topic) -> None:
        super().__init__(f"topic {topic!r} does not exist, and was not created")
        self.topic = topic


class BadRecord(ConsumerError):
    """A batch that cannot be read: its checksum, its compression or its form is wrong.

    It is raised again by every poll, until the program seeks past it.
    """

    def __init__(self, partition: TopicPartition, offset: Offset, reason: str) -> None:
        super().__init__(
            f"{partition.topic}-{partition.partition} cannot be read at offset {offset}: {reason}"
        )
        self.partition = partition
        self.offset = offset


class Undeserializable(ConsumerError):
    """The program's own deserializer raised an error, which is the cause of this one.

    It is raised again by every poll, until the program seeks past the record.
    """

    def __init__(self, partition: TopicPartition, offset: Offset, error: Exception) -> None:
        super().__init__(
            f"the record of {partition.topic}-{partition.partition} at offset {offset} "
            f"could not be deserialized: {error!r}"
        )
        self.partition = partition
        self.offset = offset


class Fenced(ConsumerError):
    """Another process took over the place of this static member."""

    def __init__(self, instance_id: InstanceId | None) -> None:
        super().__init__(
            f"another member with group.instance.id {instance_id!r} has taken over: "
            "two running processes must not share one id"
        )
        self.instance_id = instance_id


class GroupRefused(ConsumerError):
    """The coordinator will not have this member; says why, and what to change."""

    def __init__(self, group_id: GroupId, code: ErrorCode, advice: str) -> None:
        super().__init__(f"group {group_id!r} refused: {code.name}; {advice}")
        self.group_id = group_id
        self.code = code


class BadAssignment(ConsumerError):
    """An assignor gave something that it may not give."""


class BrokerRefused(ConsumerError):
    """Any other error a broker answers with."""

    def __init__(self, code: ErrorCode, what: str) -> None:
        super().__init__(f"{what}: {code.name}")
        self.code = code
