"""Topic settings: Kafka's names, defaults and bounds, and suggestions for unknown names."""

import pytest

from kohort.log.errors import RequestRejected
from kohort.log.topic_config import SETTINGS, SettingType, parse_settings, parse_value
from kohort.types import ErrorCode
from kohort.wire.batch import TimestampType

# As Apache Kafka 4.3.0 prints them (LogConfig.configKeys), its internal setting aside.
KAFKA_SETTINGS = {
    "cleanup.policy": (SettingType.LIST, "delete"),
    "compression.gzip.level": (SettingType.INT, "-1"),
    "compression.lz4.level": (SettingType.INT, "9"),
    "compression.type": (SettingType.STRING, "producer"),
    "compression.zstd.level": (SettingType.INT, "3"),
    "delete.retention.ms": (SettingType.LONG, "86400000"),
    "file.delete.delay.ms": (SettingType.LONG, "60000"),
    "flush.messages": (SettingType.LONG, "9223372036854775807"),
    "flush.ms": (SettingType.LONG, "9223372036854775807"),
    "follower.replication.throttled.replicas": (SettingType.LIST, ""),
    "index.interval.bytes": (SettingType.INT, "4096"),
    "leader.replication.throttled.replicas": (SettingType.LIST, ""),
    "local.retention.bytes": (SettingType.LONG, "-2"),
    "local.retention.ms": (SettingType.LONG, "-2"),
    "max.compaction.lag.ms": (SettingType.LONG, "9223372036854775807"),
    "max.message.bytes": (SettingType.INT, "1048588"),
    "message.timestamp.after.max.ms": (SettingType.LONG, "3600000"),
    "message.timestamp.before.max.ms": (SettingType.LONG, "9223372036854775807"),
    "message.timestamp.type": (SettingType.STRING, "CreateTime"),
    "min.cleanable.dirty.ratio": (SettingType.DOUBLE, "0.5"),
    "min.compaction.lag.ms": (SettingType.LONG, "0"),
    "min.insync.replicas": (SettingType.INT, "1"),
    "preallocate": (SettingType.BOOLEAN, "false"),
    "remote.log.copy.disable": (SettingType.BOOLEAN, "false"),
    "remote.log.delete.on.disable": (SettingType.BOOLEAN, "false"),
    "remote.storage.enable": (SettingType.BOOLEAN, "false"),
    "retention.bytes": (SettingType.LONG, "-1"),
    "retention.ms": (SettingType.LONG, "604800000"),
    "segment.bytes": (SettingType.INT, "1073741824"),
    "segment.index.bytes": (SettingType.INT, "10485760"),
    "segment.jitter.ms": (SettingType.LONG, "0"),
    "segment.ms": (SettingType.LONG, "604800000"),
    "unclean.leader.election.enable": (SettingType.BOOLEAN, "false"),
}


def test_names_types_and_defaults_match_kafka() -> None:
    ours = {
        name: (setting.kind, setting.default)
        for name, setting in SETTINGS.items()
        if not setting.is_internal
    }

    assert ours == KAFKA_SETTINGS


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_described_and_accepts_its_default(name: str) -> None:
    setting = SETTINGS[name]

    parse_value(setting, setting.default)

    assert setting.meaning.endswith(".")
    assert setting.name == name


def test_defaults_apply_without_settings() -> None:
    settings = parse_settings({})

    assert settings.has_retention
    assert not settings.is_compacted
    assert settings.max_message_bytes == 1_048_588
    assert settings.segment_bytes == 1 << 30
    assert settings.message_timestamp_type is TimestampType.CREATE_TIME
    assert settings.min_cleanable_dirty_ratio == 0.5


@pytest.mark.parametrize(
    ("policy", "has_retention", "is_compacted"),
    [
        ("delete", True, False),
        ("compact", False, True),
        (" compact , delete", True, True),
        ("", False, False),
    ],
)
def test_cleanup_policy_is_a_list(
    policy: str,
    has_retention: bool,  # noqa: FBT001 - pytest gives it
    is_compacted: bool,  # noqa: FBT001 - pytest gives it
) -> None:
    settings = parse_settings({"cleanup.policy": policy})

    assert (settings.has_retention, settings.is_compacted) == (has_retention, is_compacted)


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
def test_invalid_value_is_rejected_with_the_setting_name(name: str, text: str) -> None:
    with pytest.raises(RequestRejected, match=name) as rejected:
        parse_settings({name: text})

    assert rejected.value.code is ErrorCode.INVALID_CONFIG


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
def test_values_that_kafka_accepts_are_accepted(name: str, text: str) -> None:
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
def test_unknown_name_gets_a_suggestion(wrong: str, right: str) -> None:
    with pytest.raises(RequestRejected, match=rf"'{wrong}'; did you mean {right}\?"):
        parse_settings({wrong: "1"})


def test_min_compaction_lag_must_not_exceed_the_max() -> None:
    with pytest.raises(RequestRejected, match=r"max\.compaction\.lag\.ms is 5"):
        parse_settings({"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"})


def test_override_then_node_default_then_kafka_default() -> None:
    defaults = {"retention.ms": "1", "retention.bytes": "2"}

    settings = parse_settings({"retention.ms": "3"}, defaults)

    assert settings.retention_ms == 3
    assert settings.retention_bytes == 2
    assert settings.delete_retention_ms == 86_400_000
