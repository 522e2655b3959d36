"""IncrementalAlterConfigs: a topic's own settings change one by one, all of a request or none."""

from collections import Counter
from typing import Final

from kohort.log.errors import Refused, StorageError
from kohort.log.names import check_topic_name
from kohort.log.settings_table import SETTINGS, Kind
from kohort.node.broker import Broker
from kohort.node.described import describe_topic
from kohort.node.request import Request
from kohort.node.topics import check_single
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


def handle(broker: Broker, request: Request, now: Millis) -> None:  # noqa: ARG001
    body: IncrementalAlterConfigsRequest = request.body
    counts = Counter((each.resource_type, each.resource_name) for each in body.resources)
    responses = []
    for resource in body.resources:
        key = (resource.resource_type, resource.resource_name)
        code, reason = ErrorCode.NONE, ""
        try:
            check_single(resource.resource_name, counts[key])
            overrides = _check(broker, resource)
            if not body.validate_only:
                broker.topics.alter(Topic(resource.resource_name), overrides)
        except (Refused, StorageError) as error:
            code, reason = error.code, error.reason
        responses.append(
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=reason or None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    request.answer(IncrementalAlterConfigsResponse(responses=tuple(responses)))


def _check(broker: Broker, resource: AlterConfigsResource) -> dict[str, str]:
    """The overrides a topic would have afterwards; Refused where it cannot have them."""
    _check_form(resource)
    if resource.resource_type == _NODE:
        # DEVIATION: only topics can be changed; this node's settings are those it was started with.
        names = ", ".join(config.name for config in resource.configs)
        reason = f"cannot be changed while the node runs: {names}"
        raise Refused(ErrorCode.INVALID_REQUEST, reason)
    if resource.resource_type != _TOPIC:
        reason = f"nothing is known of resource type {resource.resource_type}"
        raise Refused(ErrorCode.INVALID_REQUEST, reason)
    if not resource.resource_name:
        raise Refused(ErrorCode.INVALID_REQUEST, "there are no settings of all topics at once")
    check_topic_name(resource.resource_name)
    topic = broker.topics.find(Topic(resource.resource_name))
    if topic is None:
        reason = f"topic {resource.resource_name} does not exist"
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)
    described = {each.name: each.value for each in describe_topic(topic.settings, broker.settings)}
    overrides = dict(topic.settings)
    for config in resource.configs:
        _change(overrides, described, config)
    broker.topics.check_overrides(overrides)
    return overrides


def _check_form(resource: AlterConfigsResource) -> None:
    if len({config.name for config in resource.configs}) < len(resource.configs):
        raise Refused(ErrorCode.INVALID_REQUEST, "a setting may appear only once")
    for config in resource.configs:
        if config.config_operation not in _OPERATIONS:
            # DEVIATION: over an operation that does not exist Kafka fails as over its own fault.
            reason = f"{config.name}: there is no operation {config.config_operation}"
            raise Refused(ErrorCode.INVALID_REQUEST, reason)
        if config.config_operation != _DELETE and config.value is None:
            raise Refused(ErrorCode.INVALID_REQUEST, f"{config.name}: no value is given")


def _change(overrides: dict[str, str], described: dict[str, str], config: AlterableConfig) -> None:
    name, text = config.name, config.value or ""
    if config.config_operation == _SET:
        overrides[name] = text
    elif config.config_operation == _DELETE:
        overrides.pop(name, None)
    elif name not in SETTINGS or SETTINGS[name].kind is not Kind.LIST:
        reason = f"{name} is no list that could be added to or taken from"
        raise Refused(ErrorCode.INVALID_CONFIG, reason)
    else:
        parts = [part for part in described[name].split(",") if part]
        changes = text.split(",")
        if config.config_operation == _APPEND:
            parts += [part for part in changes if part not in parts]
        else:
            parts = [part for part in parts if part not in changes]
        overrides[name] = ",".join(parts)
