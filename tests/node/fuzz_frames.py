"""Sends structurally mutated requests of every served API to a node while other clients work.

The node runs in this process without sockets; with --sockets more frames go to a node process. No
frame may cause an internal error, change what another client has stored, or keep its memory. The
same seed gives the same frames.

    python -m tests.node.fuzz_frames --count 1000000 --seed 7
"""

import argparse
import faulthandler
import logging
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from kohort.node.connection import Connection
from kohort.sim.disk import DiskImage, Mount
from kohort.types import ErrorCode, GroupId, MemberId, Millis, Offset, Partition, Topic
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kohort.wire.batch import Codec
from kohort.wire.consumer_protocol import Subscription, encode_subscription
from kohort.wire.envelope import decode_response, encode_request
from kohort.wire.frame import FrameReader
from kohort.wire.schema import schema_of
from tests.node.broker_harness import (
    BrokerHarness,
    fetch_request,
    new_batch,
    produce_request,
    values_in,
)
from tests.node.fake_transport import FakeTransport, RecordingLoop
from tests.node.frame_mutator import FrameMutator
from tests.node.frame_tokens import request_tokens
from tests.node.random_requests import KnownValues, RandomRequests
from tests.node.raw_client import RawClient, join_request
from tests.node.served_node import ServedNode

FRAMES_PER_NODE = 5_000
"""Then a new one starts: thousands of topics would only make the run slow."""

FRAMES_PER_CONNECTION = 40
FRAMES_PER_CHECK = 25
CONNECTIONS = 4
HANG_S = 120
"""A frame that takes longer is reported with a traceback of all threads."""

MEMORY_GROWTH_MAX = 300 << 20
_DRAIN_S = 0.02

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1",
    "log.retention.check.interval.ms": "1000",
}
SESSION_MS = 30_000
OWN_TOPIC, OWN_GROUP = Topic("of-the-other-client"), GroupId("of-the-other-client")
"""No mutated request has these names."""


class InProcessClient:
    """One connection to the loop in this process."""

    def __init__(self, loop: RecordingLoop) -> None:
        self._loop = loop
        self.transport = FakeTransport()
        connection = loop.connect(self.transport, "127.0.0.1", 1)
        assert connection is not None
        self.connection: Connection = connection

    def send(self, frame: bytes) -> None:
        """Feed a frame and iterate until nothing is due."""
        self.transport.written = b""
        self.connection.feed(frame)
        for _ in range(100):
            if not self._loop.iterate([self.connection]):
                break
        self._loop.taken.clear()

    def ask(self, body: object, version: int) -> Any:
        api_key = schema_of(type(body)).api_key
        assert api_key is not None
        self.send(encode_request(body, version, 1, "other"))
        if not self.transport.written:  # a timer answers it
            self._loop.timers_due()
            self._loop.iterate()
        (frame,) = FrameReader().feed(self.transport.written)
        return decode_response(frame, api_key, version)[1]

    def close(self) -> None:
        self.connection.lost()


class OtherClient:
    """A member that heartbeats, produces and commits; nothing of this may change."""

    def __init__(self, loop: RecordingLoop) -> None:
        self._client = client = InProcessClient(loop)
        self._values: list[str] = []
        self._committed = -1
        asked = join_request(OWN_GROUP, session_ms=SESSION_MS)
        member_id = client.ask(asked, 9).member_id
        joined = client.ask(join_request(OWN_GROUP, member_id, session_ms=SESSION_MS), 9)
        assert joined.error_code == 0, ErrorCode(joined.error_code).name
        self._member = MemberId(member_id)
        self._generation = joined.generation_id
        share = SyncGroupRequestAssignment(member_id=self._member, assignment=b"all")
        synced = client.ask(
            SyncGroupRequest(
                group_id=OWN_GROUP,
                generation_id=self._generation,
                member_id=self._member,
                assignments=(share,),
            ),
            3,
        )
        assert synced.error_code == 0, ErrorCode(synced.error_code).name

    def work(self, number: int) -> None:
        beat = HeartbeatRequest(
            group_id=OWN_GROUP, generation_id=self._generation, member_id=self._member
        )
        error = self._client.ask(beat, 4).error_code
        assert error == 0, f"heartbeat: {ErrorCode(error).name}"
        if number % 4 == 0:
            value = f"{number}"
            answer = self._client.ask(produce_request(new_batch(value), OWN_TOPIC), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0
            self._values.append(value)
        self._commit(number)

    def check(self) -> None:
        topic = OffsetFetchRequestTopics(name=OWN_TOPIC, partition_indexes=(Partition(0),))
        group = OffsetFetchRequestGroup(group_id=OWN_GROUP, topics=(topic,))
        answer = self._client.ask(OffsetFetchRequest(groups=(group,)), 8).groups[0]
        (partition,) = answer.topics[0].partitions
        assert partition.committed_offset == self._committed, partition
        fetched = self._client.ask(fetch_request(0, OWN_TOPIC, max_wait_ms=0), 12)
        found = values_in(fetched.responses[0].partitions[0].records)
        assert found == self._values, f"{len(found)} records instead of {len(self._values)}"

    def _commit(self, offset: int) -> None:
        partition = OffsetCommitRequestPartition(
            partition_index=Partition(0), committed_offset=Offset(offset), committed_metadata=""
        )
        request = OffsetCommitRequest(
            group_id=OWN_GROUP,
            generation_id_or_member_epoch=self._generation,
            member_id=self._member,
            topics=(OffsetCommitRequestTopic(name=OWN_TOPIC, partitions=(partition,)),),
        )
        error = self._client.ask(request, 8).topics[0].partitions[0].error_code
        assert error == 0, f"commit: {ErrorCode(error).name}"
        self._committed = offset


class Fuzz:
    """Frames from a seed; `sent` counts them by API key."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311  # reproducible from the seed
        self.sent: Counter[int] = Counter()
        self.refused = 0
        """Frames that closed their connection."""
        self._mutator = FrameMutator(self.random)
        self.last = b""

    def frames(self, known: KnownValues) -> Iterator[bytes]:
        """Without end."""
        requests = RandomRequests(self.random, known)
        number = 0
        while True:
            body, version = requests.next_request()
            number += 1
            tokens = request_tokens(body, version, number)
            self.last = self._mutator.mutate(tokens)
            self.sent[schema_of(type(body)).api_key or 0] += 1
            yield self.last

    def known_values(self, topic_id: bytes) -> KnownValues:
        idempotent = new_batch("a", producer_id=1, producer_epoch=0, base_sequence=0)
        compressed = [new_batch("a", "b", "c" * 100, codec=codec) for codec in Codec]
        return KnownValues(
            texts=("t", "t", "g", "m", "consumer", "range", "__consumer_offsets", "1", "compact"),
            blobs=(
                *compressed,
                *(self._mutator.mutate_batch(each) for each in compressed),
                idempotent,
                encode_subscription(Subscription(topics=(Topic("t"),))),
            ),
            ids=(topic_id,),
        )

    def run_node(self, count: int) -> None:
        """Send `count` frames to one node, and check that it is correct afterwards."""
        harness = BrokerHarness(Mount(DiskImage()), SETTINGS)
        for name in ("t", OWN_TOPIC):
            assert harness.create(name, 3 if name == "t" else 1).error_code == 0
        loop = RecordingLoop(harness)
        other = OtherClient(loop)
        clients = [InProcessClient(loop) for _ in range(CONNECTIONS)]
        ages = [0] * CONNECTIONS
        frames = self.frames(self.known_values(harness.id_of("t")))
        for number in range(count):
            at = number % CONNECTIONS
            ages[at] += 1
            self.refused += clients[at].transport.is_gone
            if clients[at].transport.is_gone or ages[at] > FRAMES_PER_CONNECTION:
                clients[at].close()
                clients[at], ages[at] = InProcessClient(loop), 0
            clients[at].send(next(frames))
            if loop.internal_error is not None:
                raise loop.internal_error
            if number % FRAMES_PER_CHECK == 0:
                self._advance(harness, loop)
                other.work(number)
        other.check()
        assert loop.metrics.internal_errors == 0
        for client in clients:
            client.close()
        harness.restart()

    def _advance(self, harness: BrokerHarness, loop: RecordingLoop) -> None:
        harness.now = Millis(harness.now + self.random.choice((1, 10, 1000)))
        deadline = loop.next_deadline()
        if deadline is not None and deadline <= harness.now:
            loop.timers_due()
            loop.iterate()
        if self.random.random() < 0.02:
            loop.clean(1 << 20)


def run(count: int, seed: int, *, is_reporting: bool = False) -> Counter[int]:
    """Send `count` frames, to a new node from time to time."""
    fuzz = Fuzz(seed)
    memory_before = 0
    began = time.monotonic()
    faulthandler.enable()
    for first in range(0, count, FRAMES_PER_NODE):
        faulthandler.dump_traceback_later(HANG_S * 10, exit=True)
        try:
            fuzz.run_node(min(FRAMES_PER_NODE, count - first))
        except BaseException as error:
            error.add_note(f"seed {seed}, frame {sum(fuzz.sent.values())}: {fuzz.last.hex()}")
            raise
        # After the first node everything that is built once exists.
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        memory_before = memory_before or memory
        assert memory - memory_before < MEMORY_GROWTH_MAX, f"{memory >> 20} MB"
        if is_reporting:
            rate = (first + FRAMES_PER_NODE) / (time.monotonic() - began)
            done = f"{first + FRAMES_PER_NODE:,} frames, {fuzz.refused:,} malformed"
            print(f"{done}, {rate:,.0f}/s, {memory >> 20} MB", flush=True)
    faulthandler.cancel_dump_traceback_later()
    return fuzz.sent


def send_over_sockets(served: ServedNode, count: int, seed: int) -> None:
    """The same over sockets, to a node process."""
    fuzz = Fuzz(seed)
    frames = fuzz.frames(fuzz.known_values(bytes(16)))
    sent = 0
    while sent < count:
        with RawClient(served.address) as client, suppress(ConnectionError):
            for _ in range(FRAMES_PER_CONNECTION):
                sent += 1
                client.socket.sendall(next(frames))
            # Closing with unread responses would discard what the node has not read yet.
            client.socket.settimeout(_DRAIN_S)
            with suppress(TimeoutError):
                while client.socket.recv(1 << 16):
                    pass
    assert "internal-error" not in served.log, served.log[-3000:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--sockets", type=int, default=0, metavar="COUNT")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    # Every malformed frame is logged.
    logging.disable(logging.WARNING)
    sent = run(options.count, options.seed, is_reporting=True)
    print(f"{sum(sent.values()):,} frames of {len(sent)} APIs, no internal error")
    if options.sockets:
        with (
            tempfile.TemporaryDirectory(prefix="kohort-fuzz-") as directory,
            ServedNode(Path(directory), SETTINGS) as served,
        ):
            send_over_sockets(served, options.sockets, options.seed)
            assert served.stop() == 0
        print(f"{options.sockets:,} frames over sockets, no internal error")


if __name__ == "__main__":
    main()
