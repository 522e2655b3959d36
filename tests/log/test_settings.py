"""Settings: Kafka's names, defaults and bounds; mistakes are answered with the nearest name."""

import pytest

from kohort.log.errors import Refused
from kohort.log.settings import parse_settings, parse_value
from kohort.log.settings_table import SETTINGS, Kind
from kohort.types import ErrorCode
from kohort.wire.batch import TimestampType

# As Apache Kafka 4.3.0 prints them (LogConfig.configKeys), its internal setting aside.
KAFKAS = {
    "cleanup.policy": (Kind.LIST, "delete"),
    "compression.gzip.level": (Kind.INT, "-1"),
    "compression.lz4.level": (Kind.INT, "9"),
    "compression.type": (Kind.STRING, "producer"),
    "compression.zstd.level": (Kind.INT, "3"),
    "delete.retention.ms": (Kind.LONG, "86400000"),
    "file.delete.delay.ms": (Kind.LONG, "60000"),
    "flush.messages": (Kind.LONG, "9223372036854775807"),
    "flush.ms": (Kind.LONG, "9223372036854775807"),
    "follower.replication.throttled.replicas": (Kind.LIST, ""),
    "index.interval.bytes": (Kind.INT, "4096"),
    "leader.replication.throttled.replicas": (Kind.LIST, ""),
    "local.retention.bytes": (Kind.LONG, "-2"),
    "local.retention.ms": (Kind.LONG, "-2"),
    "max.compaction.lag.ms": (Kind.LONG, "9223372036854775807"),
    "max.message.bytes": (Kind.INT, "1048588"),
    "message.timestamp.after.max.ms": (Kind.LONG, "3600000"),
    "message.timestamp.before.max.ms": (Kind.LONG, "9223372036854775807"),
    "message.timestamp.type": (Kind.STRING, "CreateTime"),
    "min.cleanable.dirty.ratio": (Kind.DOUBLE, "0.5"),
    "min.compaction.lag.ms": (Kind.LONG, "0"),
    "min.insync.replicas": (Kind.INT, "1"),
    "preallocate": (Kind.BOOLEAN, "false"),
    "remote.log.copy.disable": (Kind.BOOLEAN, "false"),
    "remote.log.delete.on.disable": (Kind.BOOLEAN, "false"),
    "remote.storage.enable": (Kind.BOOLEAN, "false"),
    "retention.bytes": (Kind.LONG, "-1"),
    "retention.ms": (Kind.LONG, "604800000"),
    "segment.bytes": (Kind.INT, "1073741824"),
    "segment.index.bytes": (Kind.INT, "10485760"),
    "segment.jitter.ms": (Kind.LONG, "0"),
    "segment.ms": (Kind.LONG, "604800000"),
    "unclean.leader.election.enable": (Kind.BOOLEAN, "false"),
}


def test_names_types_and_defaults_are_kafkas() -> None:
    ours = {
        name: (setting.kind, setting.default)
        for name, setting in SETTINGS.items()
        if not setting.is_internal
    }

    assert ours == KAFKAS


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_says_what_it_does_and_accepts_its_default(name: str) -> None:
    setting = SETTINGS[name]

    parse_value(setting, setting.default)

    assert setting.meaning.endswith(".")
    assert setting.name == name


def test_without_any_settings_the_defaults_hold() -> None:
    settings = parse_settings({})

    assert settings.is_deleted
    assert not settings.is_compacted
    assert settings.max_message_bytes == 1_048_588
    assert settings.segment_bytes == 1 << 30
    assert settings.message_timestamp_type is TimestampType.CREATE_TIME
    assert settings.min_cleanable_dirty_ratio == 0.5


@pytest.mark.parametrize(
    ("policy", "is_deleted", "is_compacted"),
    [
        ("delete", True, False),
        ("compact", False, True),
        (" compact , delete", True, True),
        ("", False, False),
    ],
)
def test_a_policy_is_a_list(
    policy: str,
    is_deleted: bool,  # noqa: FBT001 - pytest gives it
    is_compacted: bool,  # noqa: FBT001 - pytest gives it
) -> None:
    settings = parse_settings({"cleanup.policy": policy})

    assert (settings.is_deleted, settings.is_compacted) == (is_deleted, is_compacted)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("retention.ms", "5.0"),
        ("retention.ms", ""),
        ("retention.ms", "-2"),
        ("retention.ms", "1_000"),
        ("retention.ms", "9223372036854775808"),
        ("max.message.bytes", "3000000000"),
        ("segment.bytes", "1048575"),
        ("segment.ms", "0"),
        ("min.cleanable.dirty.ratio", "1.1"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("compression.type", "none"),
        ("compression.gzip.level", "10"),
        ("cleanup.policy", "delete,archive"),
        ("preallocate", "yes"),
        ("message.timestamp.type", "createtime"),
        ("remote.storage.enable", "true"),
        ("min.compaction.lag.ms", "-1"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_name(name: str, text: str) -> None:
    with pytest.raises(Refused, match=name) as refused:
        parse_settings({name: text})

    assert refused.value.code is ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("retention.ms", " 5 "),
        ("retention.ms", "+5"),
        ("retention.ms", "-1"),
        ("retention.bytes", "-7"),
        ("preallocate", "TRUE"),
        ("compression.type", "zstd"),
        ("segment.bytes", "1048576"),
    ],
)
def test_what_kafka_takes_is_taken(name: str, text: str) -> None:
    parse_settings({name: text})


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("retention", "retention.ms"),
        ("retention.mss", "retention.ms"),
        ("cleanup_policy", "cleanup.policy"),
        ("max.message.size", "max.message.bytes"),
        ("segment.byte", "segment.bytes"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(wrong: str, right: str) -> None:
    with pytest.raises(Refused, match=rf"'{wrong}'; the nearest is '{right}'"):
        parse_settings({wrong: "1"})


def test_lags_must_not_contradict_each_other() -> None:
    with pytest.raises(Refused, match=r"max\.compaction\.lag\.ms is 5"):
        parse_settings({"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"})


def test_a_topics_own_value_goes_before_the_nodes_and_that_before_kafkas() -> None:
    defaults = {"retention.ms": "1", "retention.bytes": "2"}

    settings = parse_settings({"retention.ms": "3"}, defaults)

    assert settings.retention_ms == 3
    assert settings.retention_bytes == 2
    assert settings.delete_retention_ms == 86_400_000
