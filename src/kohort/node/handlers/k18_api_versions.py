"""ApiVersions: the served APIs and versions; every client sends it first."""

import re
from typing import Final

from kohort.node import dispatch
from kohort.node.broker import Broker
from kohort.node.request import Request
from kohort.types import ErrorCode, Millis
from kohort.wire.api.k18_api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")

_PRODUCE: Final = 0

_TABLE: Final = tuple(
    ApiVersion(
        api_key=key,
        # Kafka 4 serves Produce since version 3 but advertises 0: otherwise librdkafka before 2.8
        # does not compress (KAFKA-18659).
        min_version=0 if key == _PRODUCE else versions[0],
        max_version=versions[-1],
    )
    for key, versions in dispatch.SERVED.items()
)


def handle(_: Broker, request: Request, __: Millis) -> ApiVersionsResponse:
    body: ApiVersionsRequest = request.body
    if request.version >= 3 and not _is_named(body):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    # DEVIATION: the list of features is empty; there is no metadata version.
    return ApiVersionsResponse(api_keys=_TABLE)


def _is_named(body: ApiVersionsRequest) -> bool:
    names = (body.client_software_name, body.client_software_version)
    return all(_SOFTWARE.fullmatch(name) for name in names)
