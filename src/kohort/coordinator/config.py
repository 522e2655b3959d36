"""The limits and timeouts of the coordinator, with what each protects.

The fields carry Kafka's setting names, dots turned to underscores; the defaults are Kafka's.
"""

from typing import Final

from kohort.types import Millis, value

_MINUTE: Final = 60_000


@value
class GroupConfig:
    group_min_session_timeout_ms: Millis = Millis(6_000)
    """Protects the group from a rebalance at every short network delay."""

    group_max_session_timeout_ms: Millis = Millis(30 * _MINUTE)
    """Protects the group from waiting for hours for a member that has crashed."""

    group_initial_rebalance_delay_ms: Millis = Millis(3_000)
    """Protects a starting application from one rebalance per member: the first waits for others."""

    group_max_size: int = 2**31 - 1
    """Protects leader and coordinator from a group that is too large. No limit by default."""

    group_new_member_join_timeout_ms: Millis = Millis(5 * _MINUTE)
    """Protects a long join phase from members that joined, timed out and joined again."""

    offset_metadata_max_bytes: int = 4_096
    """Protects memory and log from large metadata in commits. Kafka counts UTF-16 units."""

    offsets_retention_ms: Millis = Millis(7 * 24 * 60 * _MINUTE)
    """Protects the log from unused groups; the setting itself is in minutes."""

    offsets_retention_check_interval_ms: Millis = Millis(10 * _MINUTE)
    """The interval of expiry; protects the node from checking all offsets too often."""
