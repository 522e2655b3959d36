"""Request and response headers, and the header version for each message version.

Version notes, request:
 0  API key, API version and correlation id; no supported API uses it
 1  the client id
 2  flexible, but the client id keeps its two-byte length, because a broker must be able to read
    the header of an ApiVersions request of an unknown version

Version notes, response:
 0  the correlation id
 1  flexible
"""

from typing import Final

from kohort.wire.schema import int16, int32, message, schema_of, string

API_VERSIONS_KEY: Final = 18


@message(versions=(0, 2), flexible_since=2)
class RequestHeader:
    request_api_key: int = int16()
    request_api_version: int = int16()
    correlation_id: int = int32()
    client_id: str | None = string(since=1, nullable_since=1, compact=False)


@message(versions=(0, 1), flexible_since=1)
class ResponseHeader:
    correlation_id: int = int32()


def request_header_version(request: type, version: int) -> int:
    return 2 if schema_of(request).is_flexible(version) else 1


def response_header_version(response: type, version: int) -> int:
    """Always 0 for ApiVersions, because the client does not know the broker's versions yet."""
    schema = schema_of(response)
    return 1 if schema.is_flexible(version) and schema.api_key != API_VERSIONS_KEY else 0
