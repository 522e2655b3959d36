"""Nominal types: a member id is not a group id, though both are strings on the wire."""

from typing import Final, NewType

GroupId = NewType("GroupId", str)
MemberId = NewType("MemberId", str)
InstanceId = NewType("InstanceId", str)
"""The group.instance.id of a static member (KIP-345)."""

Topic = NewType("Topic", str)
Partition = NewType("Partition", int)
Offset = NewType("Offset", int)
Generation = NewType("Generation", int)

Millis = NewType("Millis", int)
"""A duration, or a moment since the epoch, in milliseconds. The name beside it says which."""

BrokerId = NewType("BrokerId", int)
ProducerId = NewType("ProducerId", int)
ProducerEpoch = NewType("ProducerEpoch", int)
TransactionalId = NewType("TransactionalId", str)

Uuid = NewType("Uuid", bytes)
"""Sixteen raw bytes. Building uuid.UUID objects costs more than decoding the rest of a field."""

ZERO_UUID: Final = Uuid(bytes(16))
