"""DescribeConfigs and IncrementalAlterConfigs: where a value is from, and who may change it."""

from pathlib import Path
from typing import Any

import pytest

from kohort.log.settings_table import SETTINGS as TOPIC_SETTINGS
from kohort.node.config import SETTINGS, TOPIC_DEFAULTS
from kohort.types import Topic
from kohort.wire.api.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kohort.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.node.asking import Scene, name_of, new_batch

TOPIC, NODE, LOGGER, GROUP = 2, 4, 8, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(
    scene: Scene, kind: int, name: str, *keys: str, version: int = 4, **facts: Any
) -> dict[str, Any]:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys or None
    )
    (result,) = scene.answer(
        DescribeConfigsRequest(resources=(resource,), **facts), version
    ).results
    assert name_of(result.error_code) == "NONE", result.error_message
    assert (result.resource_type, result.resource_name) == (kind, name)
    return {config.name: config for config in result.configs}


def describe_error(scene: Scene, kind: int, name: str) -> str:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    (result,) = scene.answer(DescribeConfigsRequest(resources=(resource,)), 4).results
    return name_of(result.error_code)


def alter(
    scene: Scene,
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
    (response,) = scene.answer(request, 1).responses
    assert bool(response.error_message) <= bool(response.error_code)
    return name_of(response.error_code)


# Describing


@pytest.mark.parametrize("version", range(1, 5))
def test_every_topic_setting_is_told(scene: Scene, version: int) -> None:
    scene.create("t")

    told = describe(scene, TOPIC, "t", version=version)

    assert set(told) == {s.name for s in TOPIC_SETTINGS.values() if not s.is_internal}
    assert told["retention.ms"].value == "604800000"
    assert not told["retention.ms"].read_only


def test_only_the_settings_asked_for_are_told(scene: Scene) -> None:
    scene.create("t")

    assert set(describe(scene, TOPIC, "t", "retention.ms", "colour")) == {"retention.ms"}


def test_a_value_is_told_with_all_that_stands_behind_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path, {"log.retention.ms": "5000"})
    scene.create("t", retention_ms="70")

    (config,) = describe(scene, TOPIC, "t", "retention.ms", include_synonyms=True).values()

    assert (config.value, config.config_source) == ("70", 1)
    synonyms = [(each.name, each.value, each.source) for each in config.synonyms]
    assert synonyms == [
        ("retention.ms", "70", 1),
        ("log.retention.ms", "5000", 4),
        ("log.retention.ms", "604800000", 5),
    ]
    scene.close()


def test_types_and_meanings_are_told_to_whoever_asks(scene: Scene) -> None:
    scene.create("t")

    told = describe(scene, TOPIC, "t", include_documentation=True)

    types = {name: told[name].config_type for name in ("preallocate", "segment.bytes", "flush.ms")}
    assert types == {"preallocate": 1, "segment.bytes": 3, "flush.ms": 5}
    assert told["cleanup.policy"].config_type == 7
    assert all(each.documentation for each in told.values())
    assert describe(scene, TOPIC, "t")["flush.ms"].documentation is None


def test_the_nodes_settings_are_told_and_read_only(tmp_path: Path) -> None:
    scene = Scene(tmp_path, {"num.partitions": "3"})

    told = describe(scene, NODE, "1", include_synonyms=True)

    assert set(told) == set(SETTINGS)
    assert (told["num.partitions"].value, told["num.partitions"].config_source) == ("3", 4)
    assert told["auto.create.topics.enable"].value == "true"
    assert told["auto.create.topics.enable"].config_type == 1
    assert told["node.id"].config_source == 5
    assert all(each.read_only for each in told.values())
    scene.close()


def test_nothing_can_be_changed_for_all_nodes_at_once(scene: Scene) -> None:
    assert describe(scene, NODE, "") == {}


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
def test_what_has_no_settings_is_refused(scene: Scene, kind: int, name: str, error: str) -> None:
    assert describe_error(scene, kind, name) == error


def test_every_default_of_the_node_is_one_for_topics() -> None:
    assert set(TOPIC_DEFAULTS) <= set(TOPIC_SETTINGS)
    assert set(TOPIC_DEFAULTS.values()) <= set(SETTINGS)
    for name, own in TOPIC_DEFAULTS.items():
        assert TOPIC_SETTINGS[name].default == str(SETTINGS[own].default)


# Altering


def test_a_setting_is_set_holds_at_once_and_is_deleted_again(scene: Scene) -> None:
    scene.create("t")

    assert alter(scene, ("max.message.bytes", SET, "10")) == "NONE"
    assert name_of(scene.produce(new_batch("a")).error_code) == "MESSAGE_TOO_LARGE"
    assert alter(scene, ("max.message.bytes", DELETE, None)) == "NONE"
    assert name_of(scene.produce(new_batch("a")).error_code) == "NONE"
    assert describe(scene, TOPIC, "t")["max.message.bytes"].config_source == 5


def test_a_change_outlives_a_restart(scene: Scene) -> None:
    scene.create("t")
    alter(scene, ("retention.ms", SET, "99"))

    scene.restart()

    assert describe(scene, TOPIC, "t")["retention.ms"].value == "99"


def test_a_list_grows_and_shrinks_from_what_is_in_force(scene: Scene) -> None:
    scene.create("t")

    assert alter(scene, ("cleanup.policy", APPEND, "compact")) == "NONE"
    assert describe(scene, TOPIC, "t")["cleanup.policy"].value == "delete,compact"
    assert alter(scene, ("cleanup.policy", SUBTRACT, "delete")) == "NONE"
    assert describe(scene, TOPIC, "t")["cleanup.policy"].value == "compact"


def test_validating_changes_nothing(scene: Scene) -> None:
    scene.create("t")

    assert alter(scene, ("retention.ms", SET, "99"), validate_only=True) == "NONE"
    assert alter(scene, ("retention.ms", SET, "x"), validate_only=True) == "INVALID_CONFIG"

    assert describe(scene, TOPIC, "t")["retention.ms"].config_source == 5


def test_one_bad_change_spoils_all_of_its_topic(scene: Scene) -> None:
    scene.create("t")

    assert alter(scene, ("retention.ms", SET, "99"), ("colour", SET, "red")) == "INVALID_CONFIG"

    assert describe(scene, TOPIC, "t")["retention.ms"].config_source == 5


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
def test_what_cannot_be_changed_is_refused(
    scene: Scene, changes: list[tuple[str, int, str | None]], error: str
) -> None:
    scene.create("t")

    assert alter(scene, *changes) == error


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
def test_only_topics_that_exist_can_be_changed(
    scene: Scene, kind: int, name: str, error: str
) -> None:
    assert alter(scene, ("num.partitions", SET, "2"), kind=kind, name=name) == error


def test_a_resource_named_twice_is_not_changed_at_all(scene: Scene) -> None:
    scene.create("t")
    change = AlterableConfig(name="retention.ms", config_operation=SET, value="1")
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=(change,))

    answer = scene.answer(IncrementalAlterConfigsRequest(resources=(resource, resource)), 1)

    assert [name_of(each.error_code) for each in answer.responses] == ["INVALID_REQUEST"] * 2
    topic = scene.broker.topics.find(Topic("t"))
    assert topic is not None
    assert topic.settings == {}
