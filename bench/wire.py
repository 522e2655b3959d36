"""CPU time of the wire package compared with kio: decode a request, build and encode its response.

Both sides do what a broker does with a frame: read key, version, header and body, build the
response from plain values, and write it with header and length. kio decodes with native code and
encodes in Python.
"""

import importlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from struct import Struct
from types import ModuleType
from typing import Any, Final

from kio.index import load_request_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_reader, entity_writer

from bench.kit.harness import Contest, main
from kohort.wire.api import find_api
from kohort.wire.envelope import decode_request, encode_request, encode_response

RATIO_MAX: Final = 0.4

CORRELATION_ID: Final = 1234
GROUP: Final = "order-service"
MEMBER: Final = "order-service-1-6b2f9d1c-8f0e-4f0c-9d55-0f6a1c2b3d4e"
TOPIC: Final = "orders"
PARTITIONS: Final = range(10)
API_KEYS: Final = range(30)
RECORDS: Final = bytes(1024)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What the two sides name differently; all other names are Kafka's."""

    classes: ModuleType
    no_throttle: dict[str, Any]
    no_error: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request, and the function that builds its response with either side's classes."""

    metric: str
    key: int
    version: int
    request: dict[str, Any]
    answer: Callable[[Side], Any]


def answer_heartbeat(side: Side) -> Any:
    return side.classes.HeartbeatResponse(**side.no_throttle, error_code=side.no_error)


def answer_offset_commit(side: Side) -> Any:
    m = side.classes
    partitions = [
        m.OffsetCommitResponsePartition(partition_index=partition, error_code=side.no_error)
        for partition in PARTITIONS
    ]
    topic = m.OffsetCommitResponseTopic(name=TOPIC, partitions=tuple(partitions))
    return m.OffsetCommitResponse(**side.no_throttle, topics=(topic,))


def answer_join_group(side: Side) -> Any:
    m = side.classes
    members = [m.JoinGroupResponseMember(member_id=MEMBER, metadata=bytes(40)) for _ in range(3)]
    return m.JoinGroupResponse(
        **side.no_throttle,
        error_code=side.no_error,
        generation_id=6,
        protocol_type="consumer",
        protocol_name="range",
        leader=MEMBER,
        member_id=MEMBER,
        members=tuple(members),
    )


def answer_fetch(side: Side) -> Any:
    m = side.classes
    partitions = [
        m.PartitionData(
            partition_index=partition,
            error_code=side.no_error,
            high_watermark=1_000_010,
            last_stable_offset=1_000_010,
            log_start_offset=0,
            aborted_transactions=None,
            records=RECORDS,
        )
        for partition in PARTITIONS
    ]
    topic = m.FetchableTopicResponse(topic=TOPIC, partitions=tuple(partitions))
    return m.FetchResponse(
        **side.no_throttle, error_code=side.no_error, session_id=77, responses=(topic,)
    )


def answer_api_versions(side: Side) -> Any:
    m = side.classes
    keys = [m.ApiVersion(api_key=key, min_version=0, max_version=9) for key in API_KEYS]
    return m.ApiVersionsResponse(error_code=side.no_error, api_keys=tuple(keys), **side.no_throttle)


def exchanges() -> Iterator[Exchange]:
    yield Exchange(
        metric="Heartbeat v4",
        key=12,
        version=4,
        request={"group_id": GROUP, "generation_id": 5, "member_id": MEMBER},
        answer=answer_heartbeat,
    )
    m = ours(8)
    commits = tuple(
        m.OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=1_000_000,
            committed_leader_epoch=3,
            committed_metadata="",
        )
        for partition in PARTITIONS
    )
    topics = (m.OffsetCommitRequestTopic(name=TOPIC, partitions=commits),)
    yield Exchange(
        metric="OffsetCommit v8, 10 partitions",
        key=8,
        version=8,
        request={"group_id": GROUP, "member_id": MEMBER, "topics": topics},
        answer=answer_offset_commit,
    )
    m = ours(11)
    protocol = m.JoinGroupRequestProtocol(name="cooperative-sticky", metadata=bytes(40))
    yield Exchange(
        metric="JoinGroup v7",
        key=11,
        version=7,
        request={"group_id": GROUP, "member_id": MEMBER, "protocols": (protocol,)},
        answer=answer_join_group,
    )
    m = ours(1)
    fetches = tuple(
        m.FetchPartition(partition=partition, fetch_offset=1_000_000, partition_max_bytes=1_048_576)
        for partition in PARTITIONS
    )
    yield Exchange(
        metric="Fetch v12, 10 partitions of 1 KiB",
        key=1,
        version=12,
        request={"max_wait_ms": 500, "topics": (m.FetchTopic(topic=TOPIC, partitions=fetches),)},
        answer=answer_fetch,
    )
    yield Exchange(
        metric="ApiVersions v3, 30 keys",
        key=18,
        version=3,
        request={"client_software_name": "kohort", "client_software_version": "0.1.0"},
        answer=answer_api_versions,
    )


# Kohort


def ours(key: int) -> ModuleType:
    api = find_api(key)
    assert api is not None
    return importlib.import_module(api.request.__module__)


def kohort_side(key: int) -> Side:
    return Side(classes=ours(key), no_throttle={"throttle_time_ms": 0}, no_error=0)


def kohort_turn(frame: bytes, version: int, answer: Callable[[Side], Any], side: Side) -> bytes:
    header, _ = decode_request(frame)
    return encode_response(answer(side), version, header.correlation_id)


# kio, as a broker would use it: readers and writers are looked up once per key and version

KEY_AND_VERSION: Final = Struct(">hh")
LENGTH: Final = Struct(">i")


def kio_side(key: int, version: int) -> Side:
    request = load_request_schema(key, version)
    return Side(
        classes=importlib.import_module(request.__module__.replace(".request", ".response")),
        no_throttle={"throttle_time": timedelta(0)},
        no_error=KioErrorCode.none,
    )


@cache
def kio_readers(key: int, version: int) -> Any:
    request = load_request_schema(key, version)
    return entity_reader(request.__header_schema__), entity_reader(request)


@cache
def kio_writers(response: Any) -> Any:
    header = response.__header_schema__
    return header, entity_writer(header), entity_writer(response)


def kio_turn(frame: bytes, answer: Callable[[Side], Any], side: Side) -> bytes:
    read_header, read_body = kio_readers(*KEY_AND_VERSION.unpack_from(frame))
    header, size = read_header(frame, 0)
    read_body(frame, size)
    return kio_response(answer(side), header.correlation_id)


def kio_response(body: Any, correlation_id: int) -> bytes:
    header, write_header, write_body = kio_writers(type(body))  # type: ignore[arg-type]  # a class
    buffer = io.BytesIO(bytes(LENGTH.size))
    buffer.seek(LENGTH.size)
    write_header(buffer, header(correlation_id=correlation_id))
    write_body(buffer, body)
    size = buffer.tell() - LENGTH.size
    buffer.seek(0)
    buffer.write(LENGTH.pack(size))
    return buffer.getvalue()


# Both


def contest(exchange: Exchange) -> Contest:
    api = find_api(exchange.key)
    assert api is not None
    request = api.request(**exchange.request)
    frame = encode_request(request, exchange.version, CORRELATION_ID, "order-service-1")[4:]
    kohort = partial(
        kohort_turn, frame, exchange.version, exchange.answer, kohort_side(exchange.key)
    )
    kio = partial(kio_turn, frame, exchange.answer, kio_side(exchange.key, exchange.version))
    assert_kio_reads(exchange, request, frame)
    assert kohort() == kio(), f"{exchange.metric}: the answers differ"
    return Contest(metric=exchange.metric, kohort=kohort, peer=kio, target=RATIO_MAX)


def assert_kio_reads(exchange: Exchange, request: Any, frame: bytes) -> None:
    """Both sides decode the frame and encode the same bytes again."""
    read_header, read_body = kio_readers(exchange.key, exchange.version)
    header, size = read_header(frame, 0)
    body, _ = read_body(frame, size)
    buffer = io.BytesIO()
    entity_writer(type(header))(buffer, header)
    entity_writer(type(body))(buffer, body)
    assert buffer.getvalue() == frame, f"{exchange.metric}: kio writes another request"
    assert decode_request(frame)[1] == request, f"{exchange.metric}: we read another request"


if __name__ == "__main__":
    main(
        description="CPU time to decode a request and to build and encode its answer.",
        peer="kio",
        contests=[contest(exchange) for exchange in exchanges()],
    )
