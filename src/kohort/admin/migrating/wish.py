"""What a migration is asked for, what it says on its way, and what came of it. Values."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from kohort.admin.errors import AdminError
from kohort.client.topic_partition import TopicPartition
from kohort.types import GroupId, Millis, Offset, Topic, value


class MigrationStopped(AdminError):
    """It cannot go on; what was done is kept, and another run goes on from there."""


class MigrationRefused(AdminError):
    """It cannot be begun, for all these reasons. Nothing was changed."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class NotTheSame(AdminError):
    """B has something else than was read from A."""


@value
class MigrationWish:
    state: Path
    """Where it is remembered what was done."""
    topics: tuple[Topic, ...] = ()
    """All but internal ones, where none is named."""
    groups: tuple[GroupId, ...] = ()
    """All that have committed something in these topics, where none is named."""
    is_without_groups: bool = False
    replication: int | None = None
    """Of topics that are made; as the cluster is set up, where it is not said."""
    is_into_existing: bool = False
    """Whether a topic of B that is not ours, or is another, may be added to."""
    is_replacing_offsets: bool = False
    """Whether offsets that groups have in B may be overwritten."""
    patience_ms: Millis = Millis(60_000)
    """How long it goes on trying when a cluster is away."""


# What is to be done


class TopicStep(StrEnum):
    CREATE = "create"
    CONTINUE = "continue"
    """An earlier run has begun it."""
    ADD = "add"
    """It is there, and what is copied comes behind what it has."""


@value
class TopicPlan:
    topic: Topic
    step: TopicStep
    partitions: int
    offsets: int
    """How many offsets are still to be looked at; there may be fewer records."""
    settings: tuple[tuple[str, str], ...]
    """That are not as they are by default, in A."""


@value
class GroupPlan:
    group_id: GroupId
    partitions: int
    """In which it has committed, of the topics that are copied."""
    has_members: bool


@value
class MigrationPlan:
    source: str
    target: str
    topics: tuple[TopicPlan, ...]
    groups: tuple[GroupPlan, ...]
    internal: tuple[Topic, ...]
    """That are not copied."""
    refusals: tuple[str, ...]
    """Each forbids the migration."""
    warnings: tuple[str, ...]


# On its way


class Phase(StrEnum):
    COPYING = "copying"
    VERIFYING = "verifying"
    MOVING = "moving groups"


@value
class Progress:
    phase: Phase
    done: int
    """Offsets or groups."""
    total: int
    records: int
    """Copied or compared so far, in this phase."""
    data_bytes: int


Watch = Callable[[Progress], None]


# What came of it


@value
class CopiedPartition:
    partition: TopicPartition
    copied: int
    """Records that are in B, of all runs."""
    copied_now: int
    checksum: int
    """CRC-32 of all of them, as they were read from A and found in B."""
    source_next: Offset
    target_next: Offset


@value
class MovedOffset:
    partition: TopicPartition
    source: Offset
    target: Offset


@value
class MovedGroup:
    group_id: GroupId
    offsets: tuple[MovedOffset, ...]
    """What was committed in B."""
    compared: int
    """How many of them point to a record, which is the same in both; the others are at the end."""


@value
class MigrationSummary:
    plan: MigrationPlan
    partitions: tuple[CopiedPartition, ...]
    groups: tuple[MovedGroup, ...]
    warnings: tuple[str, ...]
    failures: tuple[str, ...]
    """What was wished for and is not done; all else is."""
    seconds: float

    @property
    def copied_now(self) -> int:
        return sum(each.copied_now for each in self.partitions)
