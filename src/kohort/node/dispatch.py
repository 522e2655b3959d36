"""The served APIs: their versions, the modules of their handlers, and how these are called.

Handlers are imported after the node has begun to listen, one in each event-loop iteration, which
keeps the start fast. A request that comes earlier has its handler imported at once.
"""

from collections.abc import Generator, Iterator
from importlib import import_module
from types import GeneratorType
from typing import Any, Final

from kohort.node.broker import Broker, Handler
from kohort.node.request import (
    PARKED,
    RESPONSE_BYTES_MAX,
    AfterSync,
    Disconnect,
    EncodedResponse,
    PreparedResponse,
    Request,
    SlicedWork,
)
from kohort.node.response_errors import ERROR_FINDERS
from kohort.types import ErrorCode, Millis
from kohort.wire.envelope import (
    decode_request_header,
    encode_large_response,
    encode_response,
    peek_request,
)
from kohort.wire.errors import UnencodableMessage, UnsupportedVersion
from kohort.wire.header import API_VERSIONS_KEY

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

HANDLER_FILES: Final = tuple(_FILES)
"""The modules in `handlers`, one per served API key."""

_FILE_BY_KEY: Final = {int(file[1:3]): file for file in HANDLER_FILES}

API_NAMES: Final = {key: file[4:].title().replace("_", "") for key, file in _FILE_BY_KEY.items()}
"""Kafka's names of the served APIs, by key."""

_handlers: dict[int, Handler] = {}

_SLICED: Final = frozenset((0, 1, 2, 3, 8, 15, 19, 20, 21, 23, 32, 35, 37, 75))
"""The APIs that handle any number of items in slices."""

_UNSLICED_ITEMS_MAX: Final = 10_000
_ITEMS_MAX: Final = {9: 50_000}
"""Array items in one request for the other APIs, which handle some part of them at once: at most
about 100 ms."""


def find_items_max(api_key: int, items_max: int) -> int:
    """The maximum number of array items in a large request; `items_max` is the setting."""
    if api_key in _SLICED:
        return items_max
    return min(items_max, _ITEMS_MAX.get(api_key, _UNSLICED_ITEMS_MAX))


def load_handlers() -> Iterator[None]:
    """Import the handlers that are not yet imported, one in each step, and what they import late:
    the compression libraries."""
    for key in _FILE_BY_KEY:
        if key not in _handlers:
            _load(key)
            yield
    for library in ("lz4.frame", "zstandard", "cramjam"):
        import_module(library)
        yield


def handle(broker: Broker, request: Request, now: Millis) -> SlicedWork | None:
    """Answer a request, or park it; raises UnsupportedVersion if its API is not served.

    The first slice runs now. If there are more, they are returned: `settle` what they return.
    """
    if request.undecoded is None:
        answer = _find_handler(broker, request)(broker, request, now)
        if type(answer) is not GeneratorType:
            settle(broker, request, answer)
            return None
        work = encode_at_end(request, answer)
    else:
        work = _decode_and_handle(broker, request, request.undecoded, now)
    return _begin(broker, request, work)


def continue_later(broker: Broker, request: Request, work: SlicedWork) -> SlicedWork | None:
    """Like `handle`, for a parked request whose response is long work."""
    return _begin(broker, request, encode_at_end(request, work))


def _begin(broker: Broker, request: Request, work: SlicedWork) -> SlicedWork | None:
    try:
        next(work)
    except StopIteration as end:
        settle(broker, request, end.value)
        return None
    return work


def _decode_and_handle(
    broker: Broker, request: Request, decoding: Generator[None, Any, Any], now: Millis
) -> SlicedWork:
    while request.undecoded is not None:
        try:
            next(decoding)
        except StopIteration as end:
            request.body, request.undecoded = end.value, None
        else:
            now = yield
    answer = _find_handler(broker, request)(broker, request, now)
    if type(answer) is GeneratorType:
        answer = yield from encode_at_end(request, answer)
    return answer


def encode_at_end(request: Request, work: SlicedWork) -> SlicedWork:
    """Work of more than one slice may have a large response, so this is encoded in slices too."""
    try:
        next(work)
    except StopIteration as end:
        return end.value
    answer: object = None
    try:
        done = None
        while True:
            done = work.send((yield done))
    except StopIteration as end:
        answer = end.value
    if isinstance(answer, AfterSync):
        encoded = yield from _encode(request, answer.response)
        return AfterSync(encoded)
    return (yield from _encode(request, answer))


def _encode(request: Request, answer: object) -> SlicedWork:
    if answer is PARKED or isinstance(answer, EncodedResponse | PreparedResponse | Disconnect):
        return answer
    header = request.header
    try:
        payload = yield from encode_large_response(
            answer, header.request_api_version, header.correlation_id, RESPONSE_BYTES_MAX
        )
    except UnencodableMessage as error:
        return Disconnect(str(error))
    return EncodedResponse(payload, ERROR_FINDERS[type(answer)](answer))


def settle(broker: Broker, request: Request, answer: object) -> None:
    """Answer a request with what its handler has returned."""
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
    # Imported late, like handlers, whose messages it uses.
    from kohort.node.error_responses import make_error_response  # noqa: PLC0415

    refusal = make_error_response(API_VERSIONS_KEY, None, 0, ErrorCode.UNSUPPORTED_VERSION)
    return encode_response(refusal, 0, decode_request_header(frame).correlation_id)


def _find_handler(broker: Broker, request: Request) -> Handler:
    key = request.header.request_api_key
    handler = _handlers.get(key)
    if handler is None:
        if key not in _FILE_BY_KEY:
            raise UnsupportedVersion(key, f"API key {key}", request.version)
        handler = _load(key)
    return handler if broker.faults is None else broker.faults.replace_handler(request, handler)


def _load(key: int) -> Handler:
    handler: Handler = import_module(f"kohort.node.handlers.{_FILE_BY_KEY[key]}").handle
    _handlers[key] = handler
    return handler
