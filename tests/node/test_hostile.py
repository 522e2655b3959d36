"""Hostile clients: each loses its own connection, and no other client is affected.

One node serves all the tests, and a bystander works on beside each of them.
"""

import os
import resource
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from random import Random

import pytest

from kohort.types import (
    ErrorCode,
    Generation,
    GroupId,
    Millis,
    Offset,
    Partition,
    Topic,
)
from kohort.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from kohort.wire.api.k18_api_versions import ApiVersionsRequest
from kohort.wire.batch import Codec, peek
from kohort.wire.batch_header import HEADER_BYTES, assemble
from kohort.wire.envelope import encode_request
from tests.node.background_client import BackgroundClient
from tests.node.broker_harness import new_batch, produce_request
from tests.node.fuzz_frames import send_over_sockets
from tests.node.random_requests import KnownValues, RandomRequests
from tests.node.raw_client import Disconnected, RawClient, join_alone, join_request
from tests.node.served_node import ServedNode
from tests.wait import wait_until

MEBIBYTE = 1 << 20

IDLE = 2000
PIPELINED = 100_000

SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 500,
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedNode]:
    with ServedNode(tmp_path_factory.mktemp("hostile"), SETTINGS) as served:
        yield served
        assert served.stop() == 0


@pytest.fixture(autouse=True)
def _bystander(served: ServedNode) -> Iterator[None]:
    with BackgroundClient(served.address):
        yield
    assert "Traceback" not in served.log


@pytest.fixture
def random() -> Random:
    seed = int(os.environ.get("KOHORT_SEED", time.time_ns() % 2**32))
    print(f"KOHORT_SEED={seed}")
    return Random(seed)  # noqa: S311  # nothing here is secret


def is_hung_up_on(client: RawClient) -> bool:
    """Whether the node closes this connection; earlier responses are ignored."""
    try:
        while True:
            client.receive_frame()
    except Disconnected:
        return True
    except TimeoutError:
        return False


def closings(served: ServedNode) -> list[str]:
    return [line for line in served.log.splitlines() if "connection-closed" in line]


# Malformed frames

BAD_LENGTHS = (-1, -(2**31), 0, 3, 2**31 - 1, 104_857_601)


@pytest.mark.parametrize("length", BAD_LENGTHS)
def test_invalid_frame_length_closes_the_connection_with_one_log_line(
    served: ServedNode, length: int
) -> None:
    before = len(closings(served))

    with RawClient(served.address) as client:
        client.socket.sendall(struct.pack(">i", length) + b"and more")
        assert is_hung_up_on(client)

    assert [str(length) in line for line in closings(served)[before:]] == [True]


def test_random_bytes_close_only_their_connection(served: ServedNode, random: Random) -> None:
    before = len(closings(served))
    count = 200

    for _ in range(count):
        noise = random.randbytes(random.randrange(4, 200))
        with RawClient(served.address) as client:
            client.socket.sendall(struct.pack(">i", len(noise)) + noise)
            assert is_hung_up_on(client)

    assert len(closings(served)) == before + count


def test_garbage_after_a_request_closes_the_connection(served: ServedNode) -> None:
    with RawClient(served.address) as client:
        assert client.ask(MetadataRequest(topics=()), 9).brokers
        _, frame = client.encode(MetadataRequest(topics=()), 9)
        client.socket.sendall(frame + b"\xff" * 100)
        assert is_hung_up_on(client)


def test_trailing_bytes_in_a_frame_are_ignored_as_in_kafka(served: ServedNode) -> None:
    with RawClient(served.address) as client:
        asked, frame = client.encode(MetadataRequest(topics=()), 9)
        client.socket.sendall(struct.pack(">i", len(frame) - 4 + 1) + frame[4:] + b"!")
        assert client.receive(asked).brokers


@pytest.mark.parametrize(("key", "version"), [(3, 99), (0, 2), (17, 1), (999, 0), (-1, -1)])
def test_unknown_api_key_closes_the_connection(served: ServedNode, key: int, version: int) -> None:
    with RawClient(served.address) as client:
        frame = struct.pack(">hhih", key, version, 1, -1) + bytes(10)
        client.socket.sendall(struct.pack(">i", len(frame)) + frame)
        assert is_hung_up_on(client)


def test_newer_api_versions_request_gets_the_supported_versions(served: ServedNode) -> None:
    with RawClient(served.address) as client:
        frame = struct.pack(">hhih", 18, 99, 1, -1) + b"whatever comes then"
        client.socket.sendall(struct.pack(">i", len(frame)) + frame)
        correlation_id, error = struct.unpack_from(">ih", client.receive_frame())
        assert (correlation_id, error) == (1, ErrorCode.UNSUPPORTED_VERSION)

        named = ApiVersionsRequest(client_software_name="c", client_software_version="1")
        assert client.ask(named, 3).api_keys


def test_corrupted_requests_do_not_affect_other_clients(served: ServedNode, random: Random) -> None:
    pool = KnownValues(texts=("t", "g", "m"), blobs=(new_batch("a"),), ids=(bytes(16),))
    inventor = RandomRequests(random, pool)

    for _ in range(60):
        with RawClient(served.address) as client:
            for _ in range(10):
                body, version = inventor.next_request()
                data = bytearray(encode_request(body, version, 1, "hostile"))
                for _ in range(random.randrange(3)):
                    data[random.randrange(4, len(data))] = random.randrange(256)
                try:
                    client.socket.sendall(data)
                except ConnectionError:
                    break

    with RawClient(served.address) as client:
        assert client.ask(MetadataRequest(topics=()), 9).brokers


def test_mutated_requests_do_not_affect_other_clients(served: ServedNode, random: Random) -> None:
    send_over_sockets(served, 2_000, random.getrandbits(32))

    with RawClient(served.address) as client:
        assert client.ask(MetadataRequest(topics=()), 9).brokers


# Counts

ABSURD = (2**31 - 1, 2**31 - 2, 1_000_000)


@pytest.mark.parametrize("count", ABSURD)
def test_impossible_array_length_closes_the_connection(served: ServedNode, count: int) -> None:
    before = served.resident_bytes

    with RawClient(served.address) as client:
        body = struct.pack(">hhih", 3, 1, 1, -1) + struct.pack(">i", count)
        client.socket.sendall(struct.pack(">i", len(body)) + body)
        assert is_hung_up_on(client)

    assert served.resident_bytes - before < 10 * MEBIBYTE


def test_batch_that_claims_two_billion_records_is_refused(served: ServedNode) -> None:
    batch = new_batch("a", codec=Codec.GZIP)
    header = replace(peek(batch), record_count=2**31 - 1, last_offset_delta=2**31 - 2)
    claiming = assemble(header, batch[HEADER_BYTES:])

    with RawClient(served.address) as client:
        client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=Topic("claims")),)), 9)
        answer = client.ask(produce_request(claiming, "claims"), 9)
        answer_to_next = client.ask(produce_request(new_batch("b"), "claims"), 9)

    (refused,) = answer.responses[0].partition_responses
    (accepted,) = answer_to_next.responses[0].partition_responses
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert (accepted.error_code, accepted.base_offset) == (0, 0)


def test_requests_with_100_000_items_are_answered(served: ServedNode) -> None:
    many = range(100_000)
    metadata = MetadataRequest(
        topics=tuple(MetadataRequestTopic(name=Topic(f"missing-{n}")) for n in many),
        allow_auto_topic_creation=False,
    )
    groups = DescribeGroupsRequest(groups=tuple(GroupId(f"missing-{n}") for n in many))
    partitions = tuple(
        OffsetCommitRequestPartition(
            partition_index=Partition(n), committed_offset=Offset(0), committed_metadata=""
        )
        for n in many
    )
    commit = OffsetCommitRequest(
        group_id=GroupId("g"),
        generation_id_or_member_epoch=Generation(-1),
        topics=(OffsetCommitRequestTopic(name=Topic("missing"), partitions=partitions),),
    )

    with RawClient(served.address) as client:
        assert len(client.ask(metadata, 9).topics) == len(many)
        assert len(client.ask(groups, 5).groups) == len(many)
        assert len(client.ask(commit, 8).topics[0].partitions) == len(many)


# Connections


def test_connections_closed_within_a_frame_leak_nothing(served: ServedNode, random: Random) -> None:
    files = served.open_files

    for _ in range(200):
        with RawClient(served.address) as client:
            _, frame = client.encode(MetadataRequest(topics=None), 9)
            client.socket.sendall(frame[: random.randrange(1, len(frame))])

    wait_until(lambda: served.open_files <= files, what="sockets closed")


def test_thousands_of_idle_connections_use_little_memory(served: ServedNode) -> None:
    count = min(IDLE, _files_allowed() - 500)
    files, before = served.open_files, served.resident_bytes

    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(RawClient(served.address)).socket.sendall(b"\0\0")
        wait_until(lambda: served.open_files >= files + count, what="all accepted")
        growth = served.resident_bytes - before
        print(f"{count} connections, {growth // count} bytes each")
        assert growth / count < 32 * 1024

    wait_until(lambda: served.open_files <= files, what="sockets closed")


def _files_allowed() -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def test_member_disconnected_during_a_join_does_not_block_its_group(served: ServedNode) -> None:
    with RawClient(served.address) as client:
        first = join_alone(client, "cut", session_ms=5000)
        with RawClient(served.address) as gone:
            returned = gone.ask(join_request("cut", session_ms=500), 9)
            gone.send(join_request("cut", returned.member_id, session_ms=500), 9)
            beat = HeartbeatRequest(
                group_id=first.group_id,
                generation_id=first.generation,
                member_id=first.member_id,
            )
            wait_until(
                lambda: client.ask(beat, 4).error_code == ErrorCode.REBALANCE_IN_PROGRESS,
                what="a rebalance",
            )

        def is_alone() -> bool:
            joined = client.ask(join_request("cut", first.member_id, session_ms=5000), 9)
            assert joined.error_code == 0
            return [member.member_id for member in joined.members] == [first.member_id]

        wait_until(is_alone, what="the other one's session to end")


# Clients that do not read


def test_clients_that_never_read_use_little_memory(served: ServedNode) -> None:
    make_large_topic(served, "large", 20)
    before = served.resident_bytes

    with ExitStack() as stack:
        readers = [stack.enter_context(RawClient(served.address)) for _ in range(10)]
        for reader in readers:
            frames = [reader.encode(greedy("large"), 12)[1] for _ in range(300)]
            reader.socket.sendall(b"".join(frames))
        peak = watch_memory(served, seconds=1.5)
        print(f"{(peak - before) // MEBIBYTE} MiB more for {len(readers)} readers")
        assert peak - before < 20 * MEBIBYTE * len(readers)


def test_pipeline_of_100_000_requests_is_answered(served: ServedNode) -> None:
    # The responses are much larger than the requests and than the socket buffers.
    request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    before = served.resident_bytes

    with RawClient(served.address) as client:
        frames = [client.encode(request, 3) for _ in range(PIPELINED)]
        stream = b"".join(frame for _, frame in frames)
        sender = threading.Thread(target=client.socket.sendall, args=(stream,))
        sender.start()
        growth = watch_memory(served, seconds=1.0) - before
        print(f"{growth // MEBIBYTE} MiB more for {PIPELINED} requests")
        assert growth < 20 * MEBIBYTE

        for asked, _ in frames:
            assert client.receive(asked).error_code == 0
        sender.join()


def make_large_topic(served: ServedNode, name: str, mebibytes: int) -> None:
    with RawClient(served.address) as client:
        asked = MetadataRequestTopic(name=Topic(name))
        client.ask(MetadataRequest(topics=(asked,)), 9)
        batch = new_batch("x" * (MEBIBYTE - 1000), at=time.time_ns() // 1_000_000)
        for _ in range(mebibytes):
            answer = client.ask(produce_request(batch, name, acks=1), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0


def greedy(name: str) -> FetchRequest:
    """As much as there can be."""
    partition = FetchPartition(
        partition=Partition(0), fetch_offset=Offset(0), partition_max_bytes=2**31 - 1
    )
    topic = FetchTopic(topic=Topic(name), partitions=(partition,))
    return FetchRequest(max_wait_ms=Millis(0), max_bytes=2**31 - 1, topics=(topic,))


def watch_memory(served: ServedNode, seconds: float) -> int:
    """The maximum so far."""
    seen: list[int] = []
    end = time.monotonic() + seconds

    def look() -> bool:
        seen.append(served.resident_bytes)
        return time.monotonic() >= end

    wait_until(look, seconds + 5)
    return max(seen)
