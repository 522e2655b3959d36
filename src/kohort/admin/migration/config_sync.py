"""The config of a target topic during and after the copy. Pure."""

from collections.abc import Mapping
from typing import Final

from kohort.admin.topics import TopicConfigEntry

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
"""Configs that decide which records a topic accepts and keeps, with Kafka's defaults. The target
gets the source's values, whether the topic or its brokers set them."""

_DURING_COPY: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "compression.type": "producer",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": "9223372036854775807",
    "message.timestamp.after.max.ms": "9223372036854775807",
}
"""During the copy the target keeps all records unchanged."""

_NOT_COPIED: Final = frozenset(
    ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
)
"""They contain broker ids of the source."""


def bytes_max(settings: Mapping[str, TopicConfigEntry]) -> int:
    """max.message.bytes, the limit of a batch."""
    entry = settings.get("max.message.bytes")
    return int(entry.content if entry and entry.content else DEFAULTS["max.message.bytes"])


def overrides(settings: Mapping[str, TopicConfigEntry]) -> dict[str, str]:
    """Values that differ from Kafka's defaults, set by the topic or by the source's brokers."""
    return {
        name: entry.content
        for name, entry in settings.items()
        if entry.content is not None
        and name not in _NOT_COPIED
        and (not entry.is_default or entry.content != DEFAULTS.get(name, entry.content))
    }


def config_during_copy(
    source: Mapping[str, TopicConfigEntry], target: Mapping[str, TopicConfigEntry]
) -> dict[str, str]:
    """The target topic's config before the first record is written."""
    held = {name: content for name, content in _DURING_COPY.items() if name in target}
    larger = max(bytes_max(source), bytes_max(target))
    return {**held, "max.message.bytes": str(larger)}


def config_after_copy(
    source: Mapping[str, TopicConfigEntry], target: Mapping[str, TopicConfigEntry]
) -> tuple[dict[str, str | None], list[str]]:
    """The final config of a created topic, and the names that the target does not support.

    `target` is the config of the target topic without overrides. None removes an override.
    """
    wanted = {
        name: entry.content for name, entry in source.items() if name in DEFAULTS and entry.content
    } | overrides(source)
    unknown = sorted(name for name in wanted if name not in target and not source[name].is_default)
    after: dict[str, str | None] = dict.fromkeys(config_during_copy(source, target))
    after |= {
        name: content
        for name, content in wanted.items()
        if name in target and target[name].content != content
    }
    return after, unknown


def config_before_copy(
    source: Mapping[str, TopicConfigEntry], target: Mapping[str, TopicConfigEntry]
) -> dict[str, str | None]:
    """The final config of a topic that existed before: its previous config."""
    return {
        name: None if target[name].is_default else target[name].content
        for name in config_during_copy(source, target)
        if name in target
    }


def differences(
    source: Mapping[str, TopicConfigEntry], target: Mapping[str, TopicConfigEntry]
) -> list[str]:
    """Names of configs with which the two topics would keep different records."""
    return [
        name
        for name in DEFAULTS
        if name in source and name in target and source[name].content != target[name].content
    ]
