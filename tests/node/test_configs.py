"""DescribeConfigs and IncrementalAlterConfigs."""

from pathlib import Path
from typing import Any

import pytest

from kohort.log.topic_config import SETTINGS as TOPIC_SETTINGS
from kohort.node.config import SETTINGS, TOPIC_DEFAULTS
from kohort.types import Topic
from kohort.wire.api.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kohort.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.node.broker_harness import BrokerHarness, name_of, new_batch

TOPIC, NODE, LOGGER, GROUP = 2, 4, 8, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(
    harness: BrokerHarness, kind: int, name: str, *keys: str, version: int = 4, **facts: Any
) -> dict[str, Any]:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys or None
    )
    (result,) = harness.answer(
        DescribeConfigsRequest(resources=(resource,), **facts), version
    ).results
    assert name_of(result.error_code) == "NONE", result.error_message
    assert (result.resource_type, result.resource_name) == (kind, name)
    return {config.name: config for config in result.configs}


def describe_error(harness: BrokerHarness, kind: int, name: str) -> str:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    (result,) = harness.answer(DescribeConfigsRequest(resources=(resource,)), 4).results
    return name_of(result.error_code)


def alter(
    harness: BrokerHarness,
    *changes: tuple[str, int, str | None],
    kind: int = TOPIC,
    name: str = "t",
    validate_only: bool = False,
) -> str:
    configs = tuple(
        AlterableConfig(name=key, config_operation=operation, value=text)
        for key, operation, text in changes
    )
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    (response,) = harness.answer(request, 1).responses
    assert bool(response.error_message) <= bool(response.error_code)
    return name_of(response.error_code)


# Describing


@pytest.mark.parametrize("version", range(1, 5))
def test_describe_returns_every_topic_setting(harness: BrokerHarness, version: int) -> None:
    harness.create("t")

    returned = describe(harness, TOPIC, "t", version=version)

    assert set(returned) == {s.name for s in TOPIC_SETTINGS.values() if not s.is_internal}
    assert returned["retention.ms"].value == "604800000"
    assert not returned["retention.ms"].read_only


def test_describe_returns_only_the_requested_settings(harness: BrokerHarness) -> None:
    harness.create("t")

    assert set(describe(harness, TOPIC, "t", "retention.ms", "colour")) == {"retention.ms"}


def test_each_resource_of_a_request_has_its_own_settings(harness: BrokerHarness) -> None:
    for name in ("t", "u", "v"):
        harness.create(name)
    assert alter(harness, ("retention.ms", SET, "1234"), name="u") == "NONE"
    asked = [
        (TOPIC, "t", None),
        (TOPIC, "u", None),
        (TOPIC, "v", None),
        (TOPIC, "u", ("retention.ms",)),
    ]
    resources = tuple(
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for kind, name, keys in [*asked, (NODE, "1", None), (NODE, "", None)]
    )

    results = harness.answer(DescribeConfigsRequest(resources=resources), 4).results

    t, u, v, one, broker, cluster = ({each.name: each for each in row.configs} for row in results)
    assert t == v == describe(harness, TOPIC, "t")
    assert u == describe(harness, TOPIC, "u")
    assert u["retention.ms"].value == "1234" != t["retention.ms"].value
    assert one == {"retention.ms": u["retention.ms"]}
    assert broker.keys() == SETTINGS.keys()
    assert cluster == {}


def test_synonyms_list_overridden_values(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, {"log.retention.ms": "5000"})
    harness.create("t", retention_ms="70")

    (config,) = describe(harness, TOPIC, "t", "retention.ms", include_synonyms=True).values()

    assert (config.value, config.config_source) == ("70", 1)
    synonyms = [(each.name, each.value, each.source) for each in config.synonyms]
    assert synonyms == [
        ("retention.ms", "70", 1),
        ("log.retention.ms", "5000", 4),
        ("log.retention.ms", "604800000", 5),
    ]
    harness.close()


def test_types_and_documentation_are_returned_on_request(harness: BrokerHarness) -> None:
    harness.create("t")

    returned = describe(harness, TOPIC, "t", include_documentation=True)

    types = {
        name: returned[name].config_type for name in ("preallocate", "segment.bytes", "flush.ms")
    }
    assert types == {"preallocate": 1, "segment.bytes": 3, "flush.ms": 5}
    assert returned["cleanup.policy"].config_type == 7
    assert all(each.documentation for each in returned.values())
    assert describe(harness, TOPIC, "t")["flush.ms"].documentation is None


def test_broker_settings_are_described_as_read_only(tmp_path: Path) -> None:
    harness = BrokerHarness(tmp_path, {"num.partitions": "3"})

    returned = describe(harness, NODE, "1", include_synonyms=True)

    assert set(returned) == set(SETTINGS)
    assert (returned["num.partitions"].value, returned["num.partitions"].config_source) == ("3", 4)
    assert returned["auto.create.topics.enable"].value == "true"
    assert returned["auto.create.topics.enable"].config_type == 1
    assert returned["node.id"].config_source == 5
    assert all(each.read_only for each in returned.values())
    harness.close()


def test_cluster_wide_broker_settings_are_empty(harness: BrokerHarness) -> None:
    assert describe(harness, NODE, "") == {}


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "missing", "UNKNOWN_TOPIC_OR_PARTITION"),
        (TOPIC, "no good", "INVALID_TOPIC_EXCEPTION"),
        (NODE, "2", "INVALID_REQUEST"),
        (NODE, "one", "INVALID_REQUEST"),
        (GROUP, "g", "INVALID_REQUEST"),
        (LOGGER, "1", "INVALID_REQUEST"),
    ],
)
def test_resource_without_settings_is_refused(
    harness: BrokerHarness, kind: int, name: str, error: str
) -> None:
    assert describe_error(harness, kind, name) == error


def test_topic_defaults_are_broker_settings() -> None:
    assert set(TOPIC_DEFAULTS) <= set(TOPIC_SETTINGS)
    assert set(TOPIC_DEFAULTS.values()) <= set(SETTINGS)
    for name, own in TOPIC_DEFAULTS.items():
        assert TOPIC_SETTINGS[name].default == str(SETTINGS[own].default)


# Altering


def test_setting_takes_effect_at_once_and_can_be_deleted(harness: BrokerHarness) -> None:
    harness.create("t")

    assert alter(harness, ("max.message.bytes", SET, "10")) == "NONE"
    assert name_of(harness.produce(new_batch("a")).error_code) == "MESSAGE_TOO_LARGE"
    assert alter(harness, ("max.message.bytes", DELETE, None)) == "NONE"
    assert name_of(harness.produce(new_batch("a")).error_code) == "NONE"
    assert describe(harness, TOPIC, "t")["max.message.bytes"].config_source == 5


def test_changed_setting_survives_a_restart(harness: BrokerHarness) -> None:
    harness.create("t")
    alter(harness, ("retention.ms", SET, "99"))

    harness.restart()

    assert describe(harness, TOPIC, "t")["retention.ms"].value == "99"


def test_append_and_subtract_change_the_effective_list(harness: BrokerHarness) -> None:
    harness.create("t")

    assert alter(harness, ("cleanup.policy", APPEND, "compact")) == "NONE"
    assert describe(harness, TOPIC, "t")["cleanup.policy"].value == "delete,compact"
    assert alter(harness, ("cleanup.policy", SUBTRACT, "delete")) == "NONE"
    assert describe(harness, TOPIC, "t")["cleanup.policy"].value == "compact"


def test_validate_only_changes_nothing(harness: BrokerHarness) -> None:
    harness.create("t")

    assert alter(harness, ("retention.ms", SET, "99"), validate_only=True) == "NONE"
    assert alter(harness, ("retention.ms", SET, "x"), validate_only=True) == "INVALID_CONFIG"

    assert describe(harness, TOPIC, "t")["retention.ms"].config_source == 5


def test_one_invalid_change_rejects_all_changes_of_the_topic(harness: BrokerHarness) -> None:
    harness.create("t")

    assert alter(harness, ("retention.ms", SET, "99"), ("colour", SET, "red")) == "INVALID_CONFIG"

    assert describe(harness, TOPIC, "t")["retention.ms"].config_source == 5


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([("retention.ms", SET, None)], "INVALID_REQUEST"),
        ([("retention.ms", 9, "1")], "INVALID_REQUEST"),
        ([("retention.ms", SET, "1"), ("retention.ms", DELETE, None)], "INVALID_REQUEST"),
        ([("retention.ms", APPEND, "1")], "INVALID_CONFIG"),
        ([("colour", APPEND, "red")], "INVALID_CONFIG"),
        ([("cleanup.policy", APPEND, "burn")], "INVALID_CONFIG"),
        ([("colour", DELETE, None)], "NONE"),
        ([], "NONE"),
    ],
)
def test_invalid_changes_are_refused(
    harness: BrokerHarness, changes: list[tuple[str, int, str | None]], error: str
) -> None:
    harness.create("t")

    assert alter(harness, *changes) == error


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [
        (TOPIC, "missing", "UNKNOWN_TOPIC_OR_PARTITION"),
        (NODE, "1", "INVALID_REQUEST"),
        (NODE, "", "INVALID_REQUEST"),
        (GROUP, "g", "INVALID_REQUEST"),
        (99, "x", "INVALID_REQUEST"),
    ],
)
def test_unknown_topic_cannot_be_altered(
    harness: BrokerHarness, kind: int, name: str, error: str
) -> None:
    assert alter(harness, ("num.partitions", SET, "2"), kind=kind, name=name) == error


def test_duplicate_resource_is_not_changed(harness: BrokerHarness) -> None:
    harness.create("t")
    change = AlterableConfig(name="retention.ms", config_operation=SET, value="1")
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=(change,))

    answer = harness.answer(IncrementalAlterConfigsRequest(resources=(resource, resource)), 1)

    assert [name_of(each.error_code) for each in answer.responses] == ["INVALID_REQUEST"] * 2
    topic = harness.broker.topics.find(Topic("t"))
    assert topic is not None
    assert topic.settings == {}
