"""Settings as DescribeConfigs returns them: effective value, source and synonyms."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from kohort.log import topic_config as topic_settings
from kohort.node.config import SETTINGS, TOPIC_DEFAULTS, BrokerConfig, format_value
from kohort.settings.option import FLAG, NUMBER, Option
from kohort.types import value


class ConfigSource(IntEnum):
    """The numbers are those of DescribeConfigs."""

    TOPIC = 1
    NODE = 4
    DEFAULT = 5


@value
class ConfigSynonym:
    name: str
    value: str
    source: ConfigSource


@value
class ConfigEntry:
    """One setting. Its first synonym is the effective one; the others are overridden by it."""

    name: str
    value: str
    source: ConfigSource
    kind: topic_settings.SettingType
    meaning: str
    synonyms: tuple[ConfigSynonym, ...]


_LONG: Final = {
    "connections.max.idle.ms",
    "log.retention.bytes",
    "log.retention.check.interval.ms",
    "log.retention.ms",
    "log.roll.ms",
    "offsets.retention.check.interval.ms",
}
"""The numbers that have 64 bits in Kafka."""


def describe_topic(overrides: Mapping[str, str], settings: BrokerConfig) -> list[ConfigEntry]:
    """Return all topic settings in the order of their names, with these overrides."""
    return [
        _describe(setting, overrides, settings)
        for _, setting in sorted(topic_settings.SETTINGS.items())
        if not setting.is_internal
    ]


def describe_broker(settings: BrokerConfig) -> list[ConfigEntry]:
    described = []
    for _, setting in sorted(SETTINGS.items()):
        synonyms = _broker_synonyms(setting.name, settings)
        described.append(
            ConfigEntry(
                name=setting.name,
                value=synonyms[0].value,
                source=synonyms[0].source,
                kind=_type_of(setting),
                meaning=setting.meaning,
                synonyms=synonyms,
            )
        )
    return described


def _type_of(setting: Option) -> topic_settings.SettingType:
    """Everything that is neither a number nor a flag is a string."""
    if setting.kind == FLAG:
        return topic_settings.SettingType.BOOLEAN
    if setting.kind != NUMBER:
        return topic_settings.SettingType.STRING
    is_long = setting.name in _LONG or setting.name.startswith("kohort.")
    return topic_settings.SettingType.LONG if is_long else topic_settings.SettingType.INT


def _describe(
    setting: topic_settings.SettingDefinition, overrides: Mapping[str, str], settings: BrokerConfig
) -> ConfigEntry:
    # DEVIATION: In Kafka most topic settings have a broker setting as their default. Kohort has
    # only some of these broker settings, and only the variants in milliseconds.
    synonyms: tuple[ConfigSynonym, ...] = ()
    if setting.name in TOPIC_DEFAULTS:
        synonyms = _broker_synonyms(TOPIC_DEFAULTS[setting.name], settings)
    if setting.name in overrides:
        own = ConfigSynonym(
            name=setting.name, value=overrides[setting.name], source=ConfigSource.TOPIC
        )
        synonyms = (own, *synonyms)
    return ConfigEntry(
        name=setting.name,
        value=synonyms[0].value if synonyms else setting.default,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        kind=setting.kind,
        meaning=setting.meaning,
        synonyms=synonyms,
    )


def _broker_synonyms(name: str, settings: BrokerConfig) -> tuple[ConfigSynonym, ...]:
    default = ConfigSynonym(
        name=name, value=format_value(SETTINGS[name].default), source=ConfigSource.DEFAULT
    )
    if name not in settings.given:
        return (default,)
    given = ConfigSynonym(name=name, value=format_value(settings[name]), source=ConfigSource.NODE)
    return (given, default)
