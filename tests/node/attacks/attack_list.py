"""The attacks. Each has a preparation, which is not measured, and an action, which is."""

import socket
import struct
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from kohort.types import BrokerId, Millis, Offset, Partition, Topic
from kohort.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.compression import Codec
from tests.node.attacks import bulk_requests, hostile_batches
from tests.node.attacks.arena import (
    CLOSED,
    NO_CONFIGS,
    Arena,
    connections_allowed,
)
from tests.node.attacks.attack import Attack, create_large, do_nothing, one_request
from tests.node.attacks.bulk_requests import TOPIC
from tests.node.attacks.largest_requests import LARGEST_REQUESTS
from tests.node.attacks.wire_client import ConnectionLost, NoAnswer, WireClient, encode
from tests.wait import pause

MILLION = 1_000_000
MEBIBYTE = 1 << 20
COMPACTED = {"cleanup.policy": "compact"}

# Record batches


def produced(
    name: str,
    what: str,
    make: Callable[[Arena], bytes],
    expected: tuple[str, ...],
    configs: Mapping[str, str] = NO_CONFIGS,
) -> Attack:
    """One batch. The outcome includes the end offset, which an invalid batch must not move."""
    sent = one_request(
        name,
        what,
        lambda arena: bulk_requests.produce(make(arena)),
        9,
        prepare=lambda arena: arena.create_topic(configs=configs),
    )

    def act(arena: Arena) -> Callable[[], str]:
        outcome = sent.act(arena)
        return lambda: f"{outcome()}; end offset {_end_offset(arena)}"

    return Attack(name=name, what=what, act=act, prepare=sent.prepare, expected=frozenset(expected))


def _end_offset(arena: Arena) -> str:
    partition = ListOffsetsPartition(partition_index=Partition(0), timestamp=Millis(-1))
    topic = ListOffsetsTopic(name=TOPIC, partitions=(partition,))
    try:
        with WireClient(arena.port, patience_s=20.0) as client:
            answer = client.ask(ListOffsetsRequest(replica_id=BrokerId(-1), topics=(topic,)), 7)
    except (ConnectionLost, NoAnswer):
        return "unknown"
    return f"{answer.topics[0].partitions[0].offset}"


REFUSED = ("INVALID_RECORD; end offset 0", "CORRUPT_MESSAGE; end offset 0")

BATCHES = (
    produced(
        "produce-append-time",
        "Produce: 3 M equal records in one zstd batch with LogAppendTime",
        lambda arena: hostile_batches.same_records(
            arena.scaled(3 * MILLION, 2), is_log_append_time=True
        ),
        (*REFUSED, "INVALID_TIMESTAMP; end offset 0"),
        {"message.timestamp.type": "LogAppendTime"},
    ),
    produced(
        "produce-create-time",
        "the same batch to a topic with CreateTime",
        lambda arena: hostile_batches.same_records(
            arena.scaled(3 * MILLION, 2), is_log_append_time=True
        ),
        REFUSED,
    ),
    produced(
        "produce-compacted",
        "Produce: 3 M equal records in one zstd batch to a compacted topic",
        lambda arena: hostile_batches.same_records(arena.scaled(3 * MILLION, 2)),
        REFUSED,
        COMPACTED,
    ),
    produced(
        "produce-correct",
        "Produce: 400,000 correct records in one zstd batch to a compacted topic",
        lambda arena: hostile_batches.right_records(arena.scaled(400_000, 2)),
        (),
        COMPACTED,
    ),
    produced(
        "claimed-count",
        "Produce: one record in a batch that claims 2^31-1",
        lambda _: hostile_batches.claimed_records(Codec.NONE),
        REFUSED,
    ),
    produced(
        "claimed-count-zstd",
        "the same, compressed",
        lambda _: hostile_batches.claimed_records(Codec.ZSTD),
        REFUSED,
    ),
    produced(
        "zstd-bomb",
        "Produce: one record of 1 GB in a small zstd batch to a compacted topic",
        lambda arena: hostile_batches.large_value(arena.scaled(1 << 30), Codec.ZSTD),
        (),
        COMPACTED,
    ),
    produced(
        "gzip-bomb",
        "Produce: one record of 256 MB in a small gzip batch to a compacted topic",
        lambda arena: hostile_batches.large_value(arena.scaled(256 << 20), Codec.GZIP),
        (),
        COMPACTED,
    ),
)

# Topics


TOPICS = (
    one_request(
        "auto-create",
        "Metadata that creates 3,000 topics",
        lambda arena: bulk_requests.metadata(arena.scaled(3_000), is_creating=True),
        9,
        prepare=do_nothing,
    ),
    one_request(
        "create-partitions",
        "CreateTopics of a topic with 10,000 partitions",
        lambda arena: bulk_requests.create_topic(arena.scaled(10_000, 2)),
        7,
        prepare=do_nothing,
        expected=("NONE",),
    ),
    one_request(
        "delete-partitions",
        "DeleteTopics of a topic with 10,000 partitions",
        lambda _: bulk_requests.delete_topic(),
        5,
        prepare=create_large,
        expected=("NONE",),
    ),
)

# Many entries


def many(name: str, count: int, make: Callable[[int], object], version: int) -> Attack:
    return one_request(
        name,
        f"{type(make(1)).__name__.removesuffix('Request')} with {count:,} entries",
        lambda arena: make(arena.scaled(count, 2)),
        version,
    )


ENTRIES = (
    many("fetch-repeated", MILLION, bulk_requests.fetch, 12),
    many("metadata-unknown", 4 * MILLION, bulk_requests.metadata, 9),
    many("produce-entries", MILLION, bulk_requests.produce_empty, 9),
    many("list-offsets", MILLION, bulk_requests.list_offsets, 7),
    many("offset-commit", MILLION, bulk_requests.offset_commit, 8),
    many("offset-fetch", MILLION, bulk_requests.offset_fetch, 8),
    many("offset-delete", MILLION, bulk_requests.offset_delete, 0),
    many("leader-epoch", MILLION, bulk_requests.offset_for_leader_epoch, 4),
    many("delete-records", MILLION, bulk_requests.delete_records, 2),
    many("describe-configs", 20_000, bulk_requests.describe_configs, 4),
    many("alter-configs", MILLION, bulk_requests.alter_configs, 1),
    many("describe-groups", MILLION, bulk_requests.describe_groups, 5),
    many("delete-groups", MILLION, bulk_requests.delete_groups, 2),
    many("find-coordinator", MILLION, bulk_requests.find_coordinator, 4),
    many("join-protocols", MILLION, bulk_requests.join_group, 9),
    many("leave-members", MILLION, bulk_requests.leave_group, 5),
    many("sync-assignments", MILLION, bulk_requests.sync_group, 5),
    many("create-invalid", MILLION, bulk_requests.create_invalid_topics, 7),
    many("delete-unknown", MILLION, bulk_requests.delete_unknown_topics, 5),
    many("add-partitions", MILLION, bulk_requests.create_partitions, 3),
    many("describe-log-dirs", MILLION, bulk_requests.describe_log_dirs, 4),
    many("describe-topics", MILLION, bulk_requests.describe_topic_partitions, 0),
)

# Connections

_HOLD_S = 2.0
"""How long connections are held after the last byte."""


def _open_many(arena: Arena, count: int, data: bytes) -> str:
    """Open connections that each send these bytes; how many the server has accepted."""
    opened: Counter[str] = Counter()
    for _ in range(connections_allowed(count)):
        try:
            client = WireClient(arena.port, patience_s=10.0)
            arena.connections.append(client)
            client.send(data)
        except ConnectionLost:
            opened["refused"] += 1
        except NoAnswer:
            opened["timed out"] += 1
            break
    pause(_HOLD_S * min(1.0, arena.scale * 10))
    opened["open"] = sum(is_open(each) for each in arena.connections)
    opened["closed"] = len(arena.connections) - opened["open"]
    return ", ".join(f"{number:,} {state}" for state, number in opened.items() if number)


def is_open(client: WireClient) -> bool:
    """Whether the server has not closed this connection. Received bytes are not read."""
    client.socket.settimeout(0)
    try:
        return client.socket.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def half_open(arena: Arena) -> Callable[[], str]:
    outcome = _open_many(arena, arena.scaled(10_000, 10), b"\0\0")
    return lambda: outcome


def lengths_only(arena: Arena) -> Callable[[], str]:
    length = struct.pack(">i", 100 * MEBIBYTE)
    outcome = _open_many(arena, arena.scaled(1_000, 10), length)
    return lambda: outcome


def unfinished_frames(arena: Arena) -> Callable[[], str]:
    size = arena.scaled(32 * MEBIBYTE, 1024)
    data = struct.pack(">i", size) + bytes(size - 1)
    outcome = _open_many(arena, 64, data)
    return lambda: outcome


# Clients that do not read

_READERS = 20
STORED = Topic("stored")


def _store_records(arena: Arena) -> None:
    """A topic with 20 batches of 1 MB, which compression would make small."""
    arena.create_topic(topic=STORED)
    size = arena.scaled(MEBIBYTE - 1000, 1000)
    batch = hostile_batches.large_value(size, Codec.NONE)
    with WireClient(arena.port) as client:
        for _ in range(20):
            answer = client.ask(bulk_requests.produce(batch, STORED), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0


def _greedy_fetch() -> FetchRequest:
    partition = FetchPartition(
        partition=Partition(0), fetch_offset=Offset(0), partition_max_bytes=2**31 - 1
    )
    topic = FetchTopic(topic=STORED, partitions=(partition,))
    return FetchRequest(max_wait_ms=Millis(0), max_bytes=2**31 - 1, topics=(topic,))


def _pipeline(arena: Arena, body: Any, version: int, requests: int) -> Callable[[], str]:
    stream = encode(body, version) * requests
    states: Counter[str] = Counter()
    for _ in range(_READERS):
        try:
            client = arena.connect()
            client.socket.settimeout(2.0)
            client.send(stream)
            states["sent everything"] += 1
        except NoAnswer:
            states["not read from"] += 1
        except ConnectionLost:
            states[CLOSED] += 1
    pause(_HOLD_S * min(1.0, arena.scale * 10))
    outcome = ", ".join(f"{number:,} {state}" for state, number in states.items())
    return lambda: outcome


def unread_fetches(arena: Arena) -> Callable[[], str]:
    return _pipeline(arena, _greedy_fetch(), 12, arena.scaled(1_000, 5))


def unread_metadata(arena: Arena) -> Callable[[], str]:
    return _pipeline(arena, bulk_requests.metadata(1_000), 9, arena.scaled(1_000, 5))


CONNECTIONS = (
    Attack(
        name="half-open",
        what="10,000 connections that send two bytes",
        act=half_open,
    ),
    Attack(
        name="lengths-only",
        what="1,000 connections that announce a request of 100 MB and send nothing",
        act=lengths_only,
    ),
    Attack(
        name="unfinished-frames",
        what="64 connections that send 32 MB of a request without its last byte",
        act=unfinished_frames,
    ),
    Attack(
        name="unread-fetches",
        what=f"{_READERS} connections with 1,000 fetches of 20 MB each that read nothing",
        act=unread_fetches,
        prepare=_store_records,
    ),
    Attack(
        name="unread-metadata",
        what=f"{_READERS} connections with 1,000 Metadata of 1,000 names that read nothing",
        act=unread_metadata,
    ),
)

ATTACKS = (*BATCHES, *TOPICS, *ENTRIES, *LARGEST_REQUESTS, *CONNECTIONS)
