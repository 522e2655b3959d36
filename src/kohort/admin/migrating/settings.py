"""Which settings a topic has in B: while it is copied, and afterwards. Pure."""

from collections.abc import Mapping
from typing import Final

from kohort.admin.topics import Setting

DEFAULTS: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "delete.retention.ms": "86400000",
    "min.compaction.lag.ms": "0",
    "max.compaction.lag.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.after.max.ms": "3600000",
}
"""What decides which records a topic takes and keeps, as Kafka has it by default. These must be in
B as they are in A, wherever A has them from: its topic, or its brokers' own settings."""

_HELD: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.after.max.ms": "9223372036854775807",
}
"""While it is copied B keeps all that it is given, as it is given."""

_OF_THE_CLUSTER: Final = frozenset(
    ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
)
"""They name brokers of A."""


def bytes_max(settings: Mapping[str, Setting]) -> int:
    """How large a batch may be."""
    told = settings.get("max.message.bytes")
    return int(told.content if told and told.content else DEFAULTS["max.message.bytes"])


def own_settings(settings: Mapping[str, Setting]) -> dict[str, str]:
    """What is not as it is by default: by the topic's own settings, or for all topics of A."""
    return {
        name: told.content
        for name, told in settings.items()
        if told.content is not None
        and name not in _OF_THE_CLUSTER
        and (not told.is_default or told.content != DEFAULTS.get(name, told.content))
    }


def hold(source: Mapping[str, Setting], target: Mapping[str, Setting]) -> dict[str, str]:
    """What B's topic is set to before records come."""
    held = {name: content for name, content in _HELD.items() if name in target}
    larger = max(bytes_max(source), bytes_max(target))
    return {**held, "max.message.bytes": str(larger)}


def after_copy(
    source: Mapping[str, Setting], target: Mapping[str, Setting]
) -> tuple[dict[str, str | None], list[str]]:
    """What a topic that was made for it is set to at the end, and which settings B does not have.

    `target` is what B's topic has of itself, without any setting of its own; None lets go of one.
    """
    wanted = {
        name: told.content for name, told in source.items() if name in DEFAULTS and told.content
    } | own_settings(source)
    unknown = sorted(name for name in wanted if name not in target and not source[name].is_default)
    after: dict[str, str | None] = dict.fromkeys(hold(source, target))
    after |= {
        name: content
        for name, content in wanted.items()
        if name in target and target[name].content != content
    }
    return after, unknown


def before_copy(
    source: Mapping[str, Setting], target: Mapping[str, Setting]
) -> dict[str, str | None]:
    """What a topic that was there already is set to at the end: what it was set to before."""
    return {
        name: None if target[name].is_default else target[name].content
        for name in hold(source, target)
        if name in target
    }


def differences(source: Mapping[str, Setting], target: Mapping[str, Setting]) -> list[str]:
    """Names of settings by which the topics keep other records."""
    return [
        name
        for name in DEFAULTS
        if name in source and name in target and source[name].content != target[name].content
    ]
