"""ApiVersions, API key 18: the APIs and versions that a broker supports; sent first.

It must be readable before versions are negotiated: the response header never has tagged fields, and
a broker answers an unsupported version of the request with UNSUPPORTED_VERSION in version 0.

Version notes:
 1  the response has the throttle time (KIP-124)
 2  the broker responds before it throttles (KIP-219)
 3  flexible (KIP-482); client software name and version (KIP-511); features as tags (KIP-584)
 4  includes features whose lowest version is 0
"""

from kohort.types import Millis
from kohort.wire.schema import array, boolean, int16, int32, int64, message, part, string


@message(api_key=18, versions=(0, 4), flexible_since=3)
class ApiVersionsRequest:
    client_software_name: str = string(since=3, ignorable=True)
    client_software_version: str = string(since=3, ignorable=True)


@part
class ApiVersion:
    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@part
class SupportedFeatureKey:
    name: str = string(since=3)
    min_version: int = int16(since=3)
    max_version: int = int16(since=3)


@part
class FinalizedFeatureKey:
    name: str = string(since=3)
    max_version_level: int = int16(since=3)
    min_version_level: int = int16(since=3)


@message(api_key=18, versions=(0, 4), flexible_since=3)
class ApiVersionsResponse:
    error_code: int = int16()
    # With UNSUPPORTED_VERSION it contains only ApiVersions (KIP-511).
    api_keys: tuple[ApiVersion, ...] = array(ApiVersion)
    throttle_time_ms: Millis = int32(since=1, ignorable=True)
    supported_features: tuple[SupportedFeatureKey, ...] = array(
        SupportedFeatureKey, since=3, tag=0, ignorable=True
    )
    # -1 if unknown; then the finalized features are invalid.
    finalized_features_epoch: int = int64(since=3, default=-1, tag=1, ignorable=True)
    finalized_features: tuple[FinalizedFeatureKey, ...] = array(
        FinalizedFeatureKey, since=3, tag=2, ignorable=True
    )
    zk_migration_ready: bool = boolean(since=3, tag=3, ignorable=True)
