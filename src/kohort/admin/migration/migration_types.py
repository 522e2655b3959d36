"""Options, plan, progress, result and errors of a migration."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from kohort.admin.errors import AdminError
from kohort.types import GroupId, Millis, Offset, Topic, TopicPartition, value


class MigrationStopped(AdminError):
    """The migration cannot continue. Another run resumes where it stopped."""


class MigrationRefused(AdminError):
    """The migration cannot start, for these reasons. Nothing was changed."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


class VerificationFailed(AdminError):
    """The target cluster has other records than the source cluster."""


@value
class MigrationOptions:
    state: Path
    """The checkpoint file."""
    topics: tuple[Topic, ...] = ()
    """All topics except internal ones, if empty."""
    groups: tuple[GroupId, ...] = ()
    """All groups with committed offsets in these topics, if empty."""
    is_without_groups: bool = False
    replication: int | None = None
    """Replication factor of created topics; None for the target's default."""
    is_into_existing: bool = False
    """Whether to append to topics of the target that this migration did not create."""
    is_replacing_offsets: bool = False
    """Whether to overwrite offsets that groups have committed on the target."""
    stall_timeout_ms: Millis = Millis(60_000)
    """Give up after this time without progress."""


# Plan


class TopicStep(StrEnum):
    CREATE = "create"
    CONTINUE = "continue"
    """An earlier run started it."""
    ADD = "add"
    """It exists; records are appended to it."""


@value
class TopicPlan:
    topic: Topic
    step: TopicStep
    partitions: int
    offsets: int
    """Offsets left to copy; there may be fewer records."""
    settings: tuple[tuple[str, str], ...]
    """The topic config in the source that differs from Kafka's defaults."""


@value
class GroupPlan:
    group_id: GroupId
    partitions: int
    """Partitions of the copied topics in which it has committed offsets."""
    has_members: bool


@value
class MigrationPlan:
    source: str
    target: str
    topics: tuple[TopicPlan, ...]
    groups: tuple[GroupPlan, ...]
    internal: tuple[Topic, ...]
    """Internal topics, which are not copied."""
    refusals: tuple[str, ...]
    """Reasons why the migration cannot start."""
    warnings: tuple[str, ...]


# Progress


class MigrationPhase(StrEnum):
    COPYING = "copying"
    VERIFYING = "verifying"
    MOVING = "moving groups"


@value
class MigrationProgress:
    phase: MigrationPhase
    done: int
    """Offsets or groups."""
    total: int
    records: int
    """Copied or verified in this phase so far."""
    data_bytes: int


OnProgress = Callable[[MigrationProgress], None]


# Result


@value
class CopiedPartition:
    partition: TopicPartition
    copied: int
    """Records copied by all runs."""
    copied_now: int
    checksum: int
    """CRC-32 of all copied records, equal in source and target."""
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
    """The offsets that were committed in the target."""
    compared: int
    """How many of them point to a record, verified to be equal; the others are at the end."""


@value
class MigrationSummary:
    plan: MigrationPlan
    partitions: tuple[CopiedPartition, ...]
    groups: tuple[MovedGroup, ...]
    warnings: tuple[str, ...]
    failures: tuple[str, ...]
    """What could not be done. Everything else was."""
    seconds: float

    @property
    def copied_now(self) -> int:
        return sum(each.copied_now for each in self.partitions)
