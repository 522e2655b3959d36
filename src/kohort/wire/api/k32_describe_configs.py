"""DescribeConfigs, API key 32: the settings of topics, brokers and groups, for tools (KIP-133).

Version notes:
 0  removed in Kafka 4.0 (KIP-896)
 1  the source of a value, and the synonyms of a setting (KIP-226)
 2  the broker responds before it throttles (KIP-219)
 3  types and documentation of settings (KIP-569)
 4  flexible (KIP-482)
"""

from kohort.types import Millis
from kohort.wire.schema import array, boolean, int8, int16, int32, message, part, string


@part
class DescribeConfigsResource:
    # 2 a topic, 4 a broker, 8 a broker's loggers, 16 client metrics, 32 a group.
    resource_type: int = int8()
    resource_name: str = string()
    # Null requests all.
    configuration_keys: tuple[str, ...] | None = array("string", nullable_since=0)


@message(api_key=32, versions=(1, 4), flexible_since=4)
class DescribeConfigsRequest:
    resources: tuple[DescribeConfigsResource, ...] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean(since=1)
    include_documentation: bool = boolean(since=3)


@part
class DescribeConfigsSynonym:
    name: str = string(since=1)
    value: str | None = string(since=1, nullable_since=0)
    source: int = int8(since=1)


@part
class DescribeConfigsResourceResult:
    name: str = string()
    # Null if the setting is sensitive, for example a password.
    value: str | None = string(nullable_since=0)
    read_only: bool = boolean()
    config_source: int = int8(since=1, default=-1, ignorable=True)
    is_sensitive: bool = boolean()
    synonyms: tuple[DescribeConfigsSynonym, ...] = array(
        DescribeConfigsSynonym, since=1, ignorable=True
    )
    config_type: int = int8(since=3, ignorable=True)
    documentation: str | None = string(since=3, nullable_since=0, ignorable=True)


@part
class DescribeConfigsResult:
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[DescribeConfigsResourceResult, ...] = array(DescribeConfigsResourceResult)


@message(api_key=32, versions=(1, 4), flexible_since=4)
class DescribeConfigsResponse:
    throttle_time_ms: Millis = int32()
    results: tuple[DescribeConfigsResult, ...] = array(DescribeConfigsResult)
