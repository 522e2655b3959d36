"""ApiVersions: the table of what is served, which every client reads before anything else."""

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
        # Kafka 4 serves Produce from 3 on and says 0: librdkafka before 2.8 uses no compression
        # where the versions that brought it are not named (KAFKA-18659).
        min_version=0 if key == _PRODUCE else versions[0],
        max_version=versions[-1],
    )
    for key, versions in dispatch.SERVED.items()
)


def handle(broker: Broker, request: Request, now: Millis) -> None:  # noqa: ARG001
    body: ApiVersionsRequest = request.body
    if request.version >= 3 and not _is_named(body):
        request.answer(ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST))
        return
    # DEVIATION: there are no features, as there is no metadata version and no cluster-wide switch
    # that a client could use.
    request.answer(ApiVersionsResponse(api_keys=_TABLE))


def _is_named(body: ApiVersionsRequest) -> bool:
    names = (body.client_software_name, body.client_software_version)
    return all(_SOFTWARE.fullmatch(name) for name in names)
