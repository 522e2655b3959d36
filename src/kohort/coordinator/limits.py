"""Every bound and timeout of the coordinator in one place, with what each protects.

The fields carry Kafka's setting names, dots turned to underscores; the defaults are Kafka's.
"""

from typing import Final

from kohort.types import Millis, value

_MINUTE: Final = 60_000


@value
class Limits:
    group_min_session_timeout_ms: Millis = Millis(6_000)
    """Protects the coordinator from members that would flap at every hiccup of the network."""

    group_max_session_timeout_ms: Millis = Millis(30 * _MINUTE)
    """Protects the group from waiting for hours for a member that has crashed."""

    group_initial_rebalance_delay_ms: Millis = Millis(3_000)
    """Protects a starting fleet from one rebalance per member: the first waits for the others."""

    group_max_size: int = 2**31 - 1
    """Protects leader and coordinator from one group of all the world; Kafka, too, has none."""

    group_new_member_join_timeout_ms: Millis = Millis(5 * _MINUTE)
    """Protects a long join phase from members that joined, gave up, and joined again."""

    offset_metadata_max_bytes: int = 4_096
    """Protects memory and log from commits that carry documents. Kafka counts UTF-16 units."""

    offsets_retention_ms: Millis = Millis(7 * 24 * 60 * _MINUTE)
    """Protects the log from groups nobody uses any more; the setting counts in minutes."""

    offsets_retention_check_interval_ms: Millis = Millis(10 * _MINUTE)
    """How often expiry looks; protects the node from looking all the time."""
