"""The versions of each API that this client supports."""

from collections.abc import Mapping
from typing import Final, TypeAlias

VersionRange: TypeAlias = tuple[int, int]
"""Oldest and newest version, both included."""

VERSIONS: Final[Mapping[int, VersionRange]] = {
    # Produce. From 7 on batches may use zstd; from 13 on topics are identified by id.
    0: (7, 12),
    # Fetch. From 13 on topics are identified by id, and not every cluster has topic ids; 18 is for
    # followers only.
    1: (12, 17),
    # ListOffsets. 8 and later add timestamps for tiered storage.
    2: (5, 7),
    # Metadata. From 12 on topics can be requested by id.
    3: (9, 12),
    # OffsetCommit, OffsetFetch. From 10 on topics are identified by id.
    8: (8, 9),
    9: (8, 9),
    # FindCoordinator. 6 adds share groups.
    10: (4, 5),
    # JoinGroup, Heartbeat, LeaveGroup, SyncGroup.
    11: (5, 9),
    12: (4, 4),
    13: (4, 5),
    14: (5, 5),
    # DescribeGroups, ListGroups.
    15: (5, 6),
    16: (4, 5),
    # CreateTopics, DeleteTopics. DeleteTopics 6 has another request layout than 5.
    19: (5, 7),
    20: (6, 6),
    # InitProducerId. 5 and later are about transactions.
    22: (1, 4),
    # OffsetForLeaderEpoch.
    23: (3, 4),
    # DescribeConfigs, DescribeLogDirs, CreatePartitions.
    32: (4, 4),
    35: (2, 4),
    37: (2, 3),
    # DeleteGroups, IncrementalAlterConfigs, OffsetDelete.
    42: (2, 2),
    44: (1, 1),
    47: (0, 0),
    # ConsumerGroupDescribe.
    69: (0, 1),
}
"""By API key. The oldest version is one that Kafka 3.0 supports, except for newer APIs."""


def find_version(
    ours: VersionRange, theirs: VersionRange | None, version_max: int | None = None
) -> int | None:
    """The newest version that both sides support and that is at most `version_max`."""
    if theirs is None:
        return None
    newest = min(ours[1], theirs[1], ours[1] if version_max is None else version_max)
    return newest if newest >= max(ours[0], theirs[0]) else None
