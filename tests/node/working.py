"""Workers for a node that is killed under them: each knows what it sent and what it was promised.

A worker asks one node after the other, as they come up, and stops only when the work is over.
Whatever surprises it, it keeps for whoever waits for it.
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
from tests.node.asking import produce_request
from tests.node.calling import Asked, Caller, HungUp, Membership, join_alone

TOPIC = Topic("t")

IN_FLIGHT_MAX = 5
"""As many as a broker remembers of an idempotent producer."""

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
STOPPING = ErrorCode.NOT_COORDINATOR


class Gate:
    """Where workers wait while there is no node, and learn when the work is over."""

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
        self._tell(address, is_over=False)

    def close(self) -> None:
        self._tell(None, is_over=False)

    def end(self) -> None:
        self._tell(None, is_over=True)

    def _tell(self, address: Address | None, *, is_over: bool) -> None:
        with self._condition:
            self._address, self._is_over = address, is_over
            self._condition.notify_all()

    def find_node(self) -> Address | None:
        """The node to ask; None once the work is over."""
        with self._condition:
            self._waiting += 1
            self._condition.wait_for(lambda: self._is_over or self._address is not None)
            self._waiting -= 1
            return self._address


class Work(Protocol):
    name: str

    def go_on(self, caller: Caller) -> None:
        """Ask until the node hangs up."""


class Worker(threading.Thread):
    def __init__(self, gate: Gate, work: Work) -> None:
        super().__init__(name=work.name, daemon=True)
        self._gate = gate
        self._work = work
        self.surprise: BaseException | None = None

    def run(self) -> None:
        try:
            while (address := self._gate.find_node()) is not None:
                self._ask(address)
        except BaseException as error:  # kept for whoever waits
            self.surprise = error

    def _ask(self, address: Address) -> None:
        try:
            with Caller(address) as caller:
                self._work.go_on(caller)
        except (HungUp, ConnectionError):
            return


def value_of(partition: Partition, number: int) -> bytes:
    """What the producer of a partition writes as its n-th record: short ones and long ones."""
    return b"%d/%d/" % (partition, number) + b"." * (number * 7919 % 900)


class Producing:
    """The only producer of one partition, idempotent: its records are there once, in order."""

    def __init__(self, partition: Partition, random: Random) -> None:
        self.name = f"producer-{partition}"
        self.partition = partition
        self._random = random
        self._producer_id = -1
        self._ends = [0]
        """How many records there are after each batch, and before the first."""
        self._acked = 0

    @property
    def records_acked(self) -> int:
        return self._ends[self._acked]

    @property
    def records_sent(self) -> int:
        return self._ends[-1]

    def go_on(self, caller: Caller) -> None:
        if self._producer_id < 0:
            given = caller.ask(InitProducerIdRequest(transactional_id=None), 4)
            assert given.error_code == 0, given
            self._producer_id = given.producer_id
        # What was not acknowledged may be there or not: it is sent again under its old numbers.
        waiting = [self._send(caller, index) for index in range(self._acked, len(self._ends) - 1)]
        while True:
            while len(waiting) < IN_FLIGHT_MAX:
                self._ends.append(self._ends[-1] + self._random.randint(1, 12))
                waiting.append(self._send(caller, len(self._ends) - 2))
            self._hear(caller.receive(waiting.pop(0)))

    def _send(self, caller: Caller, index: int) -> Asked:
        first, end = self._ends[index : index + 2]
        # Of now, or retention would take it for old.
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
        return caller.send(request, 11)

    def _hear(self, answer: object) -> None:
        (topic,) = answer.responses  # type: ignore[attr-defined]  # a ProduceResponse
        (partition,) = topic.partition_responses
        name = ErrorCode(partition.error_code).name
        assert partition.error_code == 0, f"{self.name}: {name} {partition.error_message}"
        expected = self._ends[self._acked]
        assert partition.base_offset == expected, (
            f"{self.name}: batch {self._acked} is at {partition.base_offset}, not at {expected}"
        )
        self._acked += 1


class Committing:
    """A group with one committer, whose offsets only grow. A member once it has joined."""

    def __init__(self, group: str, random: Random) -> None:
        self.name = f"committer-{group}"
        self.group_id = GroupId(group)
        self._random = random
        self._membership: Membership | None = None
        self.sent = 0
        self.acked = 0
        """Nothing is committed at 0."""

    def join(self, caller: Caller) -> None:
        self._membership = join_alone(caller, self.group_id, session_ms=60_000)

    def go_on(self, caller: Caller) -> None:
        if self._membership is not None:
            self._come_back(caller, self._membership)
        while True:
            waiting = []
            for _ in range(self._random.randint(1, 4)):
                self.sent += self._random.randint(1, 3)
                waiting.append((self.sent, caller.send(self._commit(self.sent), 9)))
            for offset, asked in waiting:
                error = caller.receive(asked).topics[0].partitions[0].error_code
                assert error in (0, LOADING, STOPPING), f"{self.name}: {ErrorCode(error).name}"
                if error == 0:
                    self.acked = offset

    def _come_back(self, caller: Caller, membership: Membership) -> None:
        """A member outlives the node: its session goes on, under the same generation."""
        beat = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=membership.generation,
            member_id=membership.member_id,
        )
        wait_for_groups(caller)
        error = caller.ask(beat, 4).error_code
        if error == STOPPING:
            raise HungUp
        assert error == 0, f"{self.name}: {ErrorCode(error).name} though nobody else was there"

    def _commit(self, offset: int) -> OffsetCommitRequest:
        partition = OffsetCommitRequestPartition(
            partition_index=Partition(0),
            committed_offset=Offset(offset),
            # Long, so that there is soon something to compact.
            committed_metadata=f"{offset}/" + "m" * (offset % 700),
        )
        member = self._membership
        return OffsetCommitRequest(
            group_id=self.group_id,
            generation_id_or_member_epoch=member.generation if member else Generation(-1),
            member_id=member.member_id if member else MemberId(""),
            topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,)),),
        )


def wait_for_groups(caller: Caller) -> None:
    """Until the node has read its groups. A heartbeat would be believed meanwhile."""
    anybody = OffsetFetchRequest(
        groups=(OffsetFetchRequestGroup(group_id=GroupId("g"), topics=()),)
    )
    while caller.ask(anybody, 8).groups[0].error_code == LOADING:
        pass
