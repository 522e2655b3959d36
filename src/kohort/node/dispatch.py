"""The served APIs: their versions, and the modules of their handlers.

A handler is imported at the first request for its API key, which keeps the start fast.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Final

from kohort.node.broker import Broker
from kohort.node.request import PARKED, AfterSync, Request
from kohort.types import ErrorCode, Millis
from kohort.wire.envelope import decode_request_header, encode_response, peek_request
from kohort.wire.errors import UnsupportedVersion
from kohort.wire.header import API_VERSIONS_KEY

Handler = Callable[[Broker, Request, Millis], object]
"""Returns a response message, or one of the other results in `request`."""

_FILES: Final = {
    "k00_produce": (3, 13),
    "k01_fetch": (4, 18),
    "k02_list_offsets": (1, 11),
    "k03_metadata": (0, 13),
    "k08_offset_commit": (2, 10),
    "k09_offset_fetch": (1, 10),
    "k10_find_coordinator": (0, 6),
    "k11_join_group": (0, 9),
    "k12_heartbeat": (0, 4),
    "k13_leave_group": (0, 5),
    "k14_sync_group": (0, 5),
    "k15_describe_groups": (0, 6),
    "k16_list_groups": (0, 5),
    "k18_api_versions": (0, 4),
    "k19_create_topics": (2, 7),
    "k20_delete_topics": (1, 6),
    "k21_delete_records": (0, 2),
    # Version 6 is not final: Kafka serves it only with unstable.api.versions.enable.
    "k22_init_producer_id": (0, 5),
    "k23_offset_for_leader_epoch": (2, 4),
    "k32_describe_configs": (1, 4),
    "k35_describe_log_dirs": (1, 5),
    "k37_create_partitions": (0, 3),
    "k42_delete_groups": (0, 2),
    "k44_incremental_alter_configs": (0, 1),
    "k47_offset_delete": (0, 0),
    "k60_describe_cluster": (0, 2),
    "k75_describe_topic_partitions": (0, 0),
}

SERVED: Final = {int(file[1:3]): range(first, last + 1) for file, (first, last) in _FILES.items()}
"""The served versions by API key. Written out, so that no message class must be imported."""

_FILE_BY_KEY: Final = {int(file[1:3]): file for file in _FILES}

_handlers: dict[int, Handler] = {}


def handle(broker: Broker, request: Request, now: Millis) -> None:
    """Answer a request, or park it; raises UnsupportedVersion if its API is not served."""
    handler = _handlers.get(request.header.request_api_key)
    if handler is None:
        handler = _load(request)
    answer = handler(broker, request, now)
    if answer is PARKED:
        return
    if isinstance(answer, AfterSync):
        broker.answer_after_sync(request, answer.response)
    else:
        request.answer(answer)


def answer_unsupported(frame: bytes) -> bytes | None:
    """The response to a request of an unsupported version, or None if there is none.

    Only ApiVersions has one: in version 0, which every client can read (KIP-511).
    """
    if peek_request(frame)[0] != API_VERSIONS_KEY:
        return None
    from kohort.wire.api.k18_api_versions import (  # noqa: PLC0415  # imported late, like handlers
        ApiVersion,
        ApiVersionsResponse,
    )

    versions = SERVED[API_VERSIONS_KEY]
    itself = ApiVersion(api_key=API_VERSIONS_KEY, min_version=versions[0], max_version=versions[-1])
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(itself,))
    return encode_response(refusal, 0, decode_request_header(frame).correlation_id)


def _load(request: Request) -> Handler:
    key = request.header.request_api_key
    file = _FILE_BY_KEY.get(key)
    if file is None:
        raise UnsupportedVersion(key, f"API key {key}", request.version)
    handler: Handler = import_module(f"kohort.node.handlers.{file}").handle
    _handlers[key] = handler
    return handler
