"""A well-behaved client in the background: it must not be affected by hostile clients."""

import itertools
import threading
import time
from types import TracebackType
from typing import Any, Self

from kohort.node.broker import Address
from kohort.types import ErrorCode, Offset, Partition, Topic
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from tests.node.broker_harness import fetch_request, new_batch, produce_request, values_in
from tests.node.raw_client import RawClient, join_alone
from tests.wait import wait_until

TOPIC = Topic("bystander")

_NUMBERS = itertools.count()


class BackgroundClient:
    """Heartbeats, produces, fetches and commits on its own thread while the context is open."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bystander", daemon=True)
        self._failure: BaseException | None = None
        self.rounds = 0
        self.slowest_s = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self.rounds or self._failure, 20, "a first round")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            # One more round with a new connection.
            rounds = self.rounds
            wait_until(lambda: self.rounds > rounds + 1 or self._failure, 20, "a last round")
        self._is_over.set()
        self._thread.join()
        print(f"{self.rounds} rounds, the slowest request took {self.slowest_s * 1000:.0f} ms")
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            with RawClient(self._address) as client:
                self._work(client)
        except BaseException as error:  # re-raised by __exit__
            self._failure = error

    def _work(self, client: RawClient) -> None:
        client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), 9)
        member = join_alone(client, f"bystander-{next(_NUMBERS)}", session_ms=10_000)
        beat = HeartbeatRequest(
            group_id=member.group_id,
            generation_id=member.generation,
            member_id=member.member_id,
        )
        while not self._is_over.is_set():
            value = f"round {self.rounds}"
            self._check(self._ask(client, beat, 4).error_code)
            offset = self._produce(client, value)
            self._fetch(client, offset, value)
            commit = OffsetCommitRequestPartition(
                partition_index=Partition(0),
                committed_offset=Offset(offset + 1),
                committed_metadata="",
            )
            request = OffsetCommitRequest(
                group_id=member.group_id,
                generation_id_or_member_epoch=member.generation,
                member_id=member.member_id,
                topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(commit,)),),
            )
            self._check(self._ask(client, request, 9).topics[0].partitions[0].error_code)
            self.rounds += 1
            self._is_over.wait(0.002)

    def _produce(self, client: RawClient, value: str) -> int:
        now = time.time_ns() // 1_000_000
        request = produce_request(new_batch(value, at=now), TOPIC, acks=-1)
        answer = self._ask(client, request, 9)
        (partition,) = answer.responses[0].partition_responses
        self._check(partition.error_code)
        return int(partition.base_offset)

    def _fetch(self, client: RawClient, offset: int, value: str) -> None:
        answer = self._ask(client, fetch_request(offset, TOPIC), 12)
        (partition,) = answer.responses[0].partitions
        self._check(partition.error_code)
        assert values_in(partition.records) == [value]

    def _ask(self, client: RawClient, body: object, version: int) -> Any:
        began = time.monotonic()
        answer = client.ask(body, version)
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        return answer

    @staticmethod
    def _check(error_code: int) -> None:
        assert error_code == 0, ErrorCode(error_code).name
