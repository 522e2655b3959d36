"""Settings as clients see them: the value in force, where it is from and what stands behind it."""

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from kohort.log import settings_table
from kohort.node.config import SETTINGS, TOPIC_DEFAULTS, Setting, Settings, text_of
from kohort.types import value


class Source(IntEnum):
    """Numbered as DescribeConfigs does."""

    TOPIC = 1
    NODE = 4
    DEFAULT = 5


@value
class Synonym:
    """A value, and under which name it was given."""

    name: str
    value: str
    source: Source


@value
class Described:
    """One setting. Its synonyms begin with the one in force; behind it is what would come next."""

    name: str
    value: str
    source: Source
    kind: settings_table.Kind
    meaning: str
    synonyms: tuple[Synonym, ...]


_LONG: Final = {
    "connections.max.idle.ms",
    "log.retention.bytes",
    "log.retention.check.interval.ms",
    "log.retention.ms",
    "log.roll.ms",
    "offsets.retention.check.interval.ms",
}
"""Those of Kafka's numbers that it keeps in 64 bits."""


def describe_topic(overrides: Mapping[str, str], settings: Settings) -> list[Described]:
    """Every topic setting there is, in the order of their names, as these overrides leave it."""
    return [
        _describe(setting, overrides, settings)
        for _, setting in sorted(settings_table.SETTINGS.items())
        if not setting.is_internal
    ]


def describe_node(settings: Settings) -> list[Described]:
    described = []
    for _, setting in sorted(SETTINGS.items()):
        synonyms = _node_synonyms(setting.name, settings)
        described.append(
            Described(
                name=setting.name,
                value=synonyms[0].value,
                source=synonyms[0].source,
                kind=_kind_of(setting),
                meaning=setting.meaning,
                synonyms=synonyms,
            )
        )
    return described


def _kind_of(setting: Setting) -> settings_table.Kind:
    """As its description has it; what is neither a number nor a flag is words."""
    if setting.kind == "true or false":
        return settings_table.Kind.BOOLEAN
    if setting.kind != "number":
        return settings_table.Kind.STRING
    is_long = setting.name in _LONG or setting.name.startswith("kohort.")
    return settings_table.Kind.LONG if is_long else settings_table.Kind.INT


def _describe(
    setting: settings_table.Setting, overrides: Mapping[str, str], settings: Settings
) -> Described:
    # DEVIATION: Kafka has a setting of the broker behind most of those of a topic; here a node has
    # only those that are worth setting for all topics at once, in milliseconds alone.
    synonyms: tuple[Synonym, ...] = ()
    if setting.name in TOPIC_DEFAULTS:
        synonyms = _node_synonyms(TOPIC_DEFAULTS[setting.name], settings)
    if setting.name in overrides:
        own = Synonym(name=setting.name, value=overrides[setting.name], source=Source.TOPIC)
        synonyms = (own, *synonyms)
    return Described(
        name=setting.name,
        value=synonyms[0].value if synonyms else setting.default,
        source=synonyms[0].source if synonyms else Source.DEFAULT,
        kind=setting.kind,
        meaning=setting.meaning,
        synonyms=synonyms,
    )


def _node_synonyms(name: str, settings: Settings) -> tuple[Synonym, ...]:
    default = Synonym(name=name, value=text_of(SETTINGS[name].default), source=Source.DEFAULT)
    if name not in settings.given:
        return (default,)
    given = Synonym(name=name, value=text_of(settings[name]), source=Source.NODE)
    return (given, default)
