"""NewTypes of ids and numbers, so that the type checker distinguishes a member id from a group id,
and TopicPartition."""

from typing import Final, NamedTuple, NewType

GroupId = NewType("GroupId", str)
MemberId = NewType("MemberId", str)
InstanceId = NewType("InstanceId", str)
"""The group.instance.id of a static member (KIP-345)."""

Topic = NewType("Topic", str)
Partition = NewType("Partition", int)
Offset = NewType("Offset", int)
Generation = NewType("Generation", int)

Millis = NewType("Millis", int)
"""A duration, or a timestamp since the epoch, in milliseconds. The variable name says which."""

DeadlineMillis = NewType("DeadlineMillis", int)
"""A time of the node's deadline clock. Its own type, because it must not be mixed with timestamps:
the wall clock may be set."""

BrokerId = NewType("BrokerId", int)
ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)
TransactionalId = NewType("TransactionalId", str)

Uuid = NewType("Uuid", bytes)
"""Sixteen raw bytes. Building uuid.UUID objects costs more than decoding the rest of a field."""

ZERO_UUID: Final = Uuid(bytes(16))


class TopicPartition(NamedTuple):
    """Orders by topic, then by partition number. Equal to a plain (topic, number) tuple."""

    topic: Topic
    partition: Partition
