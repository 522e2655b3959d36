"""Workers of the kill loop: each remembers what it sent and what was acknowledged.

A worker reconnects to each new node process until the test ends. An unexpected error is kept for
the main thread.
"""

import threading
import time
from random import Random
from typing import Protocol

from kohort.node.broker import Address
from kohort.types import ErrorCode, Generation, GroupId, MemberId, Millis, Offset, Partition, Topic
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k22_init_producer_id import InitProducerIdRequest
from kohort.wire.batch import NewBatch, NewRecord, encode
from tests.node.broker_harness import produce_request
from tests.node.raw_client import Disconnected, Membership, RawClient, SentRequest, join_alone

TOPIC = Topic("t")

IN_FLIGHT_MAX = 5
"""The number of batches that a broker remembers per idempotent producer."""

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
STOPPING = ErrorCode.NOT_COORDINATOR


class Gate:
    """Blocks workers while no node is running, and tells them when the test ends."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._address: Address | None = None
        self._is_over = False
        self._waiting = 0

    @property
    def waiting(self) -> int:
        with self._condition:
            return self._waiting

    def open(self, address: Address) -> None:
        self._publish(address, is_over=False)

    def close(self) -> None:
        self._publish(None, is_over=False)

    def end(self) -> None:
        self._publish(None, is_over=True)

    def _publish(self, address: Address | None, *, is_over: bool) -> None:
        with self._condition:
            self._address, self._is_over = address, is_over
            self._condition.notify_all()

    def find_node(self) -> Address | None:
        """Wait for the address of the node; None when the test has ended."""
        with self._condition:
            self._waiting += 1
            self._condition.wait_for(lambda: self._is_over or self._address is not None)
            self._waiting -= 1
            return self._address


class Work(Protocol):
    name: str

    def run_until_disconnect(self, client: RawClient) -> None:
        """Send requests until the node disconnects."""


class Worker(threading.Thread):
    def __init__(self, gate: Gate, work: Work) -> None:
        super().__init__(name=work.name, daemon=True)
        self._gate = gate
        self._work = work
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while (address := self._gate.find_node()) is not None:
                self._ask(address)
        except BaseException as error:  # checked by the main thread
            self.failure = error

    def _ask(self, address: Address) -> None:
        try:
            with RawClient(address) as client:
                self._work.run_until_disconnect(client)
        except (Disconnected, ConnectionError):
            return


def value_of(partition: Partition, number: int) -> bytes:
    """The n-th record of a partition; the sizes differ."""
    return b"%d/%d/" % (partition, number) + b"." * (number * 7919 % 900)


class ProducerWork:
    """The idempotent producer of one partition; its records are stored once, in order."""

    def __init__(self, partition: Partition, random: Random) -> None:
        self.name = f"producer-{partition}"
        self.partition = partition
        self._random = random
        self._producer_id = -1
        self._ends = [0]
        """The number of records after each batch, beginning with 0."""
        self._acked = 0

    @property
    def records_acked(self) -> int:
        return self._ends[self._acked]

    @property
    def records_sent(self) -> int:
        return self._ends[-1]

    def run_until_disconnect(self, client: RawClient) -> None:
        if self._producer_id < 0:
            given = client.ask(InitProducerIdRequest(transactional_id=None), 4)
            assert given.error_code == 0, given
            self._producer_id = given.producer_id
        # Unacknowledged batches may be stored or not; they are sent again with the same sequence.
        waiting = [self._send(client, index) for index in range(self._acked, len(self._ends) - 1)]
        while True:
            while len(waiting) < IN_FLIGHT_MAX:
                self._ends.append(self._ends[-1] + self._random.randint(1, 12))
                waiting.append(self._send(client, len(self._ends) - 2))
            self._check_response(client.receive(waiting.pop(0)))

    def _send(self, client: RawClient, index: int) -> SentRequest:
        first, end = self._ends[index : index + 2]
        # The current time, because retention deletes old records.
        now = Millis(time.time_ns() // 1_000_000)
        records = tuple(
            NewRecord(key=b"k", value=value_of(self.partition, number), timestamp=now)
            for number in range(first, end)
        )
        batch = NewBatch(
            records=records,
            producer_id=self._producer_id,  # type: ignore[arg-type]  # the wire's own number
            producer_epoch=0,  # type: ignore[arg-type]  # the first
            base_sequence=first,
        )
        request = produce_request(encode(batch), TOPIC, self.partition, acks=-1)
        return client.send(request, 11)

    def _check_response(self, answer: object) -> None:
        (topic,) = answer.responses  # type: ignore[attr-defined]  # a ProduceResponse
        (partition,) = topic.partition_responses
        name = ErrorCode(partition.error_code).name
        assert partition.error_code == 0, f"{self.name}: {name} {partition.error_message}"
        expected = self._ends[self._acked]
        assert partition.base_offset == expected, (
            f"{self.name}: batch {self._acked} is at {partition.base_offset}, not at {expected}"
        )
        self._acked += 1


class CommitterWork:
    """A group with one committer, whose offsets only increase."""

    def __init__(self, group: str, random: Random) -> None:
        self.name = f"committer-{group}"
        self.group_id = GroupId(group)
        self._random = random
        self._membership: Membership | None = None
        self.sent = 0
        self.acked = 0
        """0 means that nothing is committed."""

    def join(self, client: RawClient) -> None:
        self._membership = join_alone(client, self.group_id, session_ms=60_000)

    def run_until_disconnect(self, client: RawClient) -> None:
        if self._membership is not None:
            self._resume_membership(client, self._membership)
        while True:
            waiting = []
            for _ in range(self._random.randint(1, 4)):
                self.sent += self._random.randint(1, 3)
                waiting.append((self.sent, client.send(self._commit(self.sent), 9)))
            for offset, asked in waiting:
                error = client.receive(asked).topics[0].partitions[0].error_code
                assert error in (0, LOADING, STOPPING), f"{self.name}: {ErrorCode(error).name}"
                if error == 0:
                    self.acked = offset

    def _resume_membership(self, client: RawClient, membership: Membership) -> None:
        """The membership survives a restart of the node, with the same generation."""
        beat = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=membership.generation,
            member_id=membership.member_id,
        )
        wait_for_groups(client)
        error = client.ask(beat, 4).error_code
        if error == STOPPING:
            raise Disconnected
        assert error == 0, f"{self.name}: {ErrorCode(error).name} although it is the only member"

    def _commit(self, offset: int) -> OffsetCommitRequest:
        partition = OffsetCommitRequestPartition(
            partition_index=Partition(0),
            committed_offset=Offset(offset),
            # Long, so that compaction soon has work.
            committed_metadata=f"{offset}/" + "m" * (offset % 700),
        )
        member = self._membership
        return OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=member.generation if member else Generation(-1),
            member_id=member.member_id if member else MemberId(""),
            topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),),
        )


def wait_for_groups(client: RawClient) -> None:
    """Wait until the node has loaded its groups. Heartbeats succeed even during loading."""
    fetch = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id=GroupId("g"), topics=()),))
    while client.ask(fetch, 8).groups[0].error_code == LOADING:
        pass
