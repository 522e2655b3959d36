"""Errors of the consumer. All are ConsumerErrors; each message says what to do."""

from typing import ClassVar

from kohort.types import ErrorCode, GroupId, InstanceId, Offset, Topic, TopicPartition


class ConsumerError(Exception):
    """Base class of all errors that a consumer raises."""

    is_retriable: ClassVar[bool] = False
    """Whether the same call may succeed later."""


class ConfigurationError(ConsumerError, ValueError):
    """An option is unknown, has an invalid value or contradicts another option."""


class IllegalStateError(ConsumerError, RuntimeError):
    """A call is not allowed now: after close, from a second thread, or without a group."""


class IllegalArgumentError(ConsumerError, ValueError):
    """An argument of a call is invalid."""


class KafkaTimeoutError(ConsumerError):
    """No broker could be reached, or none responded in time."""

    is_retriable = True


class UnsupportedVersionError(ConsumerError):
    """The broker supports no usable version of an API; the message names it."""


class CommitFailedError(ConsumerError):
    """The commit failed and must not be retried: the group has rebalanced without this member."""


class RebalanceInProgressError(ConsumerError):
    """The commit failed because the group is rebalancing. Call poll(), then commit again."""

    is_retriable = True


class RetriableCommitFailedError(ConsumerError):
    """The coordinator did not confirm the commit in time. It may be retried."""

    is_retriable = True


class InvalidOffsetError(ConsumerError):
    """There is no position, or it is out of range, and auto.offset.reset is none."""


class UnknownTopicOrPartitionError(ConsumerError):
    """The topic does not exist, and the broker did not create it."""

    def __init__(self, topic: Topic) -> None:
        super().__init__(f"topic {topic!r} does not exist; create it, or correct the name")
        self.topic = topic


class CorruptRecordError(ConsumerError):
    """A batch cannot be decoded: its checksum, compression or format is invalid.

    Every poll raises it again until the application seeks past the batch:
    `consumer.seek(error.partition, error.next_offset)` continues without its records.
    """

    def __init__(
        self,
        partition: TopicPartition,
        offset: Offset,
        reason: str,
        next_offset: Offset | None = None,
    ) -> None:
        super().__init__(
            f"{partition.topic}-{partition.partition} is corrupt at offset {offset}: {reason}"
        )
        self.partition = partition
        self.offset = offset
        """The position of the consumer: all records before it have been returned."""
        self.next_offset = Offset(max(offset + 1, next_offset or 0))
        """The first offset after the batch; offset + 1 if the batch does not tell its end."""
        self.reason = reason


class RecordDeserializationError(ConsumerError):
    """The application's deserializer raised an error, which is the cause of this one.

    Every poll raises it again until the application seeks past the record.
    """

    def __init__(self, partition: TopicPartition, offset: Offset, error: Exception) -> None:
        super().__init__(
            f"the record of {partition.topic}-{partition.partition} at offset {offset} "
            f"could not be deserialized: {error!r}"
        )
        self.partition = partition
        self.offset = offset


class FencedInstanceIdError(ConsumerError):
    """Another process has joined with the group.instance.id of this static member."""

    def __init__(self, instance_id: InstanceId | None) -> None:
        super().__init__(
            f"another process has joined with group.instance.id {instance_id!r}; "
            "give each running process its own id"
        )
        self.instance_id = instance_id


class GroupRejectedError(ConsumerError):
    """The coordinator rejects this member. The message says why, and what to change."""

    def __init__(self, group_id: GroupId, code: ErrorCode, advice: str) -> None:
        super().__init__(f"group {group_id!r} rejected this consumer: {code.name}; {advice}")
        self.group_id = group_id
        self.code = code


class InvalidAssignmentError(ConsumerError):
    """An assignor returned an invalid assignment, or a member's metadata cannot be decoded."""


class BrokerResponseError(ConsumerError):
    """A broker responded with any other error code."""

    def __init__(self, code: ErrorCode, what: str) -> None:
        super().__init__(f"{what}: {code.name}")
        self.code = code
