"""IncrementalAlterConfigs, API key 44: changes single settings (KIP-339).

Version notes:
 1  flexible (KIP-482)
"""

from kohort.types import Millis
from kohort.wire.schema import array, boolean, int8, int16, int32, message, part, string


@part
class AlterableConfig:
    name: str = string()
    # 0 sets, 1 deletes, 2 appends to a list, 3 removes from a list.
    config_operation: int = int8()
    value: str | None = string(nullable_since=0)


@part
class AlterConfigsResource:
    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[AlterableConfig, ...] = array(AlterableConfig)


@message(api_key=44, versions=(0, 1), flexible_since=1)
class IncrementalAlterConfigsRequest:
    resources: tuple[AlterConfigsResource, ...] = array(AlterConfigsResource)
    validate_only: bool = boolean()


@part
class AlterConfigsResourceResponse:
    error_code: int = int16()
    error_message: str | None = string(nullable_since=0)
    resource_type: int = int8()
    resource_name: str = string()


@message(api_key=44, versions=(0, 1), flexible_since=1)
class IncrementalAlterConfigsResponse:
    throttle_time_ms: Millis = int32()
    responses: tuple[AlterConfigsResourceResponse, ...] = array(AlterConfigsResourceResponse)
