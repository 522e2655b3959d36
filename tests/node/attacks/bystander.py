"""A well-behaved client in its own process: what it sees of an attack.

A member heartbeats every 20 ms. A consumer repeatedly produces a record, fetches it and commits its
offset. At the end everything acknowledged must be there, once and in order.

The parent process writes `begin` and `end`; this process answers each with one line of JSON.
"""

import json
import sys
import threading
import time
from typing import Any

from kohort.types import ErrorCode, GroupId, MemberId, Millis, Offset, Partition, Topic
from kohort.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kohort.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
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
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from kohort.wire.api.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kohort.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.batch import NewBatch, NewRecord, iter_records, split
from kohort.wire.batch import encode as encode_batch
from tests.node.attacks.wire_client import ConnectionLost, NoAnswer, WireClient
from tests.wait import wait_until

TOPIC = Topic("bystander")
GROUP = GroupId("bystander")
OUTSIDERS = GroupId("bystander-commits")
SESSION_MS = 45_000
HEARTBEAT_S = 0.02
RECORD_S = 0.05
READY_S = 180.0
AFTERWARDS_S = 20.0
"""A server that takes longer after an attack has not recovered."""

_RETRIABLE = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.MEMBER_ID_REQUIRED,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
}
"""While a broker starts."""


class Member(threading.Thread):
    """Heartbeats, and remembers the longest one."""

    def __init__(self, port: int, ended: threading.Event) -> None:
        super().__init__(daemon=True)
        self._client = WireClient(port)
        self._ended = ended
        self.longest_s = 0.0
        self.count = 0
        self.problems: list[str] = []
        self._join()

    def _join(self) -> None:
        client, member_id = self._client, MemberId("")

        def joined() -> Any:
            nonlocal member_id
            client.ask(FindCoordinatorRequest(coordinator_keys=(GROUP,)), 4)
            protocol = JoinGroupRequestProtocol(name="range", metadata=b"any")
            answer = client.ask(
                JoinGroupRequest(
                    group_id=GROUP,
                    session_timeout_ms=Millis(SESSION_MS),
                    rebalance_timeout_ms=Millis(SESSION_MS),
                    member_id=member_id,
                    protocol_type="consumer",
                    protocols=(protocol,),
                ),
                9,
            )
            member_id = answer.member_id
            assert answer.error_code in (0, *_RETRIABLE), ErrorCode(answer.error_code).name
            return answer if answer.error_code == 0 else None

        answer = wait_until(joined, READY_S, "a member")
        share = SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")
        sync = SyncGroupRequest(
            group_id=GROUP,
            generation_id=answer.generation_id,
            member_id=member_id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=(share,),
        )
        assert client.ask(sync, 5).error_code == 0
        self._beat = HeartbeatRequest(
            group_id=GROUP, generation_id=answer.generation_id, member_id=member_id
        )

    def run(self) -> None:
        began = time.monotonic()
        try:
            while not self._ended.is_set():
                began = time.monotonic()
                error = self._client.ask(self._beat, 4).error_code
                took = time.monotonic() - began
                self.longest_s = max(self.longest_s, took)
                self.count += 1
                if error:
                    self.problems.append(f"heartbeat: {ErrorCode(error).name}")
                    return
                self._ended.wait(max(0.0, HEARTBEAT_S - took))
        except (ConnectionLost, NoAnswer) as error:
            self.longest_s = max(self.longest_s, time.monotonic() - began)
            self.problems.append(f"heartbeat: {type(error).__name__}")


class Consumer(threading.Thread):
    """Produces records and consumes them; remembers what was acknowledged."""

    def __init__(self, port: int, ended: threading.Event) -> None:
        super().__init__(daemon=True)
        self._port = port
        self._ended = ended
        self._client = WireClient(port)
        self.acked = 0
        self.problems: list[str] = []
        topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1)
        created = self._client.ask(CreateTopicsRequest(topics=(topic,)), 7).topics[0]
        assert created.error_code in (0, ErrorCode.TOPIC_ALREADY_EXISTS), created
        wait_until(lambda: self._is_done(self._commit(0)), READY_S, "a coordinator")
        wait_until(lambda: self._is_done(self._produce()), READY_S, "a topic")
        self.acked = 1

    def _is_done(self, error: int) -> bool:
        if error:  # creates the coordinator's topic
            self._client.ask(FindCoordinatorRequest(coordinator_keys=(OUTSIDERS,)), 4)
        assert error in (0, *_RETRIABLE), ErrorCode(error).name
        return error == 0

    def run(self) -> None:
        try:
            while not self._ended.wait(RECORD_S):
                self._check(self._produce(), "produce")
                self._check_records(self.acked)
                self.acked += 1
                self._check(self._commit(self.acked), "commit")
        except (ConnectionLost, NoAnswer) as error:
            self.problems.append(f"consumer: {type(error).__name__}")
        except AssertionError as error:
            self.problems.append(f"consumer: {error}")

    def check_all(self) -> None:
        """On a new connection, after the attack."""
        try:
            with WireClient(self._port, AFTERWARDS_S) as self._client:
                self._check_records(0)
                committed = self._fetch_commit()
                expected = (self.acked, self.acked + 1)
                assert committed in expected, f"{committed} is committed, not {self.acked}"
        except (ConnectionLost, NoAnswer) as error:
            self.problems.append(f"afterwards: {type(error).__name__}")
        except AssertionError as error:
            self.problems.append(f"afterwards: {error}")

    @staticmethod
    def _check(error: int, what: str) -> None:
        assert error == 0, f"{what}: {ErrorCode(error).name}"

    def _produce(self) -> int:
        now = Millis(time.time_ns() // 1_000_000)
        record = NewRecord(key=b"k", value=b"%d" % self.acked, timestamp=now)
        data = PartitionProduceData(index=0, records=encode_batch(NewBatch(records=(record,))))
        topic = TopicProduceData(name=TOPIC, partition_data=(data,))
        request = ProduceRequest(acks=-1, timeout_ms=Millis(30_000), topic_data=(topic,))
        return self._client.ask(request, 9).responses[0].partition_responses[0].error_code

    def _check_records(self, first: int) -> None:
        """All records from `first` on are there, and nothing else."""
        expected = first
        while True:
            asked = FetchPartition(
                partition=Partition(0), fetch_offset=Offset(expected), partition_max_bytes=1 << 20
            )
            topic = FetchTopic(topic=TOPIC, partitions=(asked,))
            request = FetchRequest(max_wait_ms=Millis(0), min_bytes=0, topics=(topic,))
            answer = self._client.ask(request, 12).responses[0].partitions[0]
            self._check(answer.error_code, "fetch")
            data = answer.records or b""
            for position, _ in split(data, truncated_ok=True):
                for record in iter_records(data, position):
                    value = int(record.value or b"-1")
                    assert (record.offset, value) == (expected, expected), (
                        f"offset {record.offset} has record {value}, expected {expected}"
                    )
                    expected += 1
            if expected >= answer.high_watermark:
                break
        assert expected >= self.acked, f"{self.acked} records are acknowledged, {expected} found"

    def _commit(self, offset: int) -> int:
        partition = OffsetCommitRequestPartition(
            partition_index=Partition(0), committed_offset=Offset(offset), committed_metadata=""
        )
        topic = OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,))
        request = OffsetCommitRequest(group_id=OUTSIDERS, topics=(topic,))
        return self._client.ask(request, 8).topics[0].partitions[0].error_code

    def _fetch_commit(self) -> int:
        topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(Partition(0),))
        group = OffsetFetchRequestGroup(group_id=OUTSIDERS, topics=(topic,))
        answer = self._client.ask(OffsetFetchRequest(groups=(group,)), 8).groups[0]
        self._check(answer.error_code, "offset fetch")
        return answer.topics[0].partitions[0].committed_offset


def main(port: int) -> None:
    ended = threading.Event()
    consumer, member = Consumer(port, ended), Member(port, ended)
    member.start()
    consumer.start()
    wait_until(lambda: member.count > 5 and consumer.acked > 2, READY_S, "a working client")
    print("ready", flush=True)
    assert sys.stdin.readline() == "begin\n"
    member.longest_s, member.count = 0.0, 0
    print("begun", flush=True)
    assert sys.stdin.readline() == "end\n"
    ended.set()
    member.join()
    consumer.join()
    consumer.check_all()
    result = {
        "longest_s": member.longest_s,
        "heartbeats": member.count,
        "records": consumer.acked,
        "problems": member.problems + consumer.problems,
    }
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
