"""DescribeConfigs: the settings of topics and of this broker."""

from collections.abc import Mapping
from typing import Final

from kohort.log.errors import RequestRejected
from kohort.log.file_names import check_topic_name
from kohort.node.broker import Broker
from kohort.node.describe_configs import ConfigEntry, describe_broker, describe_topic
from kohort.node.request import Request, SlicedWork
from kohort.types import ErrorCode, Millis, Topic
from kohort.wire.api.k32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

_TOPIC, _NODE = 2, 4

_RESOURCES_PER_SLICE: Final = 4
"""Each has dozens of settings."""

_SHARED_MAX: Final = 1_000

_Shared = dict[object, tuple[DescribeConfigsResourceResult, ...]]
"""Descriptions by settings and requested keys. Most topics have the same settings, and thousands of
copies would take gigabytes."""


def handle(broker: Broker, request: Request, _: Millis) -> SlicedWork:
    body: DescribeConfigsRequest = request.body
    results = []
    shared: _Shared = {}
    for resource in body.resources:
        results.append(_describe(broker, body, resource, shared))
        if not len(results) % _RESOURCES_PER_SLICE:
            yield
    return DescribeConfigsResponse(results=tuple(results))


def _describe(
    broker: Broker,
    body: DescribeConfigsRequest,
    resource: DescribeConfigsResource,
    shared: _Shared,
) -> DescribeConfigsResult:
    kind, name = resource.resource_type, resource.resource_name
    try:
        overrides = _find_overrides(broker, kind, name)
    except RequestRejected as refusal:
        return DescribeConfigsResult(
            error_code=refusal.code,
            error_message=refusal.reason,
            resource_type=kind,
            resource_name=name,
        )
    wanted = frozenset(resource.configuration_keys or ())
    key = (kind, None if overrides is None else tuple(overrides.items()), wanted)
    configs = shared.get(key)
    if configs is None:
        configs = tuple(
            _config(each, body, is_read_only=kind == _NODE)
            for each in _entries(broker, kind, overrides)
            if not wanted or each.name in wanted
        )
        if len(shared) < _SHARED_MAX:
            shared[key] = configs
    return DescribeConfigsResult(
        error_code=ErrorCode.NONE, resource_type=kind, resource_name=name, configs=configs
    )


def _entries(broker: Broker, kind: int, overrides: Mapping[str, str] | None) -> list[ConfigEntry]:
    if overrides is None:
        return []
    if kind == _TOPIC:
        return describe_topic(overrides, broker.settings)
    return describe_broker(broker.settings)


def _find_overrides(broker: Broker, kind: int, name: str) -> Mapping[str, str] | None:
    """The overrides of a topic, nothing for the broker, or None if the resource has no settings."""
    if kind == _TOPIC:
        check_topic_name(name)
        topic = broker.topics.find(Topic(name))
        if topic is None:
            raise RequestRejected(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
        return topic.settings
    if kind != _NODE:
        # DEVIATION: groups, client metrics and loggers have no settings.
        raise RequestRejected(ErrorCode.INVALID_REQUEST, f"resource type {kind} is not supported")
    if not name:
        # There are no cluster-wide dynamic settings.
        return None
    if name != str(broker.node_id):
        reason = f"this is broker {broker.node_id}, not {name}"
        raise RequestRejected(ErrorCode.INVALID_REQUEST, reason)
    return {}


def _config(
    described: ConfigEntry, body: DescribeConfigsRequest, *, is_read_only: bool
) -> DescribeConfigsResourceResult:
    synonyms = described.synonyms if body.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=described.name,
        value=described.value,
        read_only=is_read_only,
        config_source=described.source,
        is_sensitive=False,
        synonyms=tuple(
            DescribeConfigsSynonym(name=each.name, value=each.value, source=each.source)
            for each in synonyms
        ),
        config_type=described.kind,
        documentation=described.meaning if body.include_documentation else None,
    )
