"""IncrementalAlterConfigs: changes the overrides of a topic, all of a request or none."""

from typing import Final

from kohort.log.errors import RequestRejected, StorageError
from kohort.log.file_names import check_topic_name
from kohort.log.topic_config import SETTINGS, SettingType
from kohort.node.broker import Broker
from kohort.node.describe_configs import describe_topic
from kohort.node.request import WROTE_FILES, Request, SlicedWork, count_in_slices
from kohort.node.topics import check_named_once
from kohort.types import ErrorCode, Millis, Topic
from kohort.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

_TOPIC, _NODE = 2, 4
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_OPERATIONS: Final = (_SET, _DELETE, _APPEND, _SUBTRACT)


def handle(broker: Broker, request: Request, _: Millis) -> SlicedWork:
    body: IncrementalAlterConfigsRequest = request.body
    counts = yield from count_in_slices(
        (each.resource_type, each.resource_name) for each in body.resources
    )
    responses = []
    for resource in body.resources:
        key = (resource.resource_type, resource.resource_name)
        code, reason, done = ErrorCode.NONE, "", None
        try:
            check_named_once(resource.resource_name, counts[key])
            overrides = _check(broker, resource)
            if not body.validate_only:
                done = WROTE_FILES
                broker.topics.alter(Topic(resource.resource_name), overrides)
        except (RequestRejected, StorageError) as error:
            broker.storage_errors.note(error)
            code, reason = error.code, error.reason
        responses.append(
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=reason or None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
        if len(responses) < len(body.resources):
            yield done
    return IncrementalAlterConfigsResponse(responses=tuple(responses))


def _check(broker: Broker, resource: AlterConfigsResource) -> dict[str, str]:
    """Return the topic's overrides after the change. Raises RequestRejected if invalid."""
    _check_form(resource)
    if resource.resource_type == _NODE:
        # DEVIATION: broker settings are fixed at start; only topics can be changed.
        names = ", ".join(config.name for config in resource.configs)
        reason = f"broker settings cannot be changed while the broker runs: {names}"
        raise RequestRejected(ErrorCode.INVALID_REQUEST, reason)
    if resource.resource_type != _TOPIC:
        reason = f"resource type {resource.resource_type} is not supported"
        raise RequestRejected(ErrorCode.INVALID_REQUEST, reason)
    if not resource.resource_name:
        raise RequestRejected(
            ErrorCode.INVALID_REQUEST, "the topic name is empty; topic defaults are broker settings"
        )
    check_topic_name(resource.resource_name)
    topic = broker.topics.find(Topic(resource.resource_name))
    if topic is None:
        reason = f"topic {resource.resource_name} does not exist"
        raise RequestRejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)
    described = {each.name: each.value for each in describe_topic(topic.settings, broker.settings)}
    overrides = dict(topic.settings)
    for config in resource.configs:
        _change(overrides, described, config)
    broker.topics.check_overrides(overrides)
    return overrides


def _check_form(resource: AlterConfigsResource) -> None:
    if len({config.name for config in resource.configs}) < len(resource.configs):
        raise RequestRejected(ErrorCode.INVALID_REQUEST, "a setting appears more than once")
    for config in resource.configs:
        if config.config_operation not in _OPERATIONS:
            # DEVIATION: Kafka returns UNKNOWN_SERVER_ERROR for an unknown operation.
            reason = f"{config.name}: unknown operation {config.config_operation}"
            raise RequestRejected(ErrorCode.INVALID_REQUEST, reason)
        if config.config_operation != _DELETE and config.value is None:
            raise RequestRejected(ErrorCode.INVALID_REQUEST, f"{config.name}: missing value")


def _change(overrides: dict[str, str], described: dict[str, str], config: AlterableConfig) -> None:
    name, text = config.name, config.value or ""
    if config.config_operation == _SET:
        overrides[name] = text
    elif config.config_operation == _DELETE:
        overrides.pop(name, None)
    elif name not in SETTINGS or SETTINGS[name].kind is not SettingType.LIST:
        reason = f"{name} is not a list, so APPEND and SUBTRACT do not apply"
        raise RequestRejected(ErrorCode.INVALID_CONFIG, reason)
    else:
        parts = [part for part in described[name].split(",") if part]
        changes = text.split(",")
        if config.config_operation == _APPEND:
            parts += [part for part in changes if part not in parts]
        else:
            parts = [part for part in parts if part not in changes]
        overrides[name] = ",".join(parts)
