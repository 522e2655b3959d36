"""A good client beside the bad ones: it beats, writes, reads, commits, and must notice nothing."""

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
from tests.node.asking import fetch_request, new_batch, produce_request, values_in
from tests.node.calling import Caller, join_alone
from tests.waiting import wait_until

TOPIC = Topic("bystander")

_NUMBERS = itertools.count()


class Bystander:
    """Asks on a thread of its own for as long as it is entered."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="bystander", daemon=True)
        self._surprise: BaseException | None = None
        self.rounds = 0
        self.slowest_s = 0.0

    def __enter__(self) -> Self:
        self._thread.start()
        wait_until(lambda: self.rounds or self._surprise, 20, "a first round")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            # Once more, from the beginning, after everything that has happened.
            rounds = self.rounds
            wait_until(lambda: self.rounds > rounds + 1 or self._surprise, 20, "a last round")
        self._is_over.set()
        self._thread.join()
        print(f"{self.rounds} rounds, the slowest request took {self.slowest_s * 1000:.0f} ms")
        if self._surprise is not None:
            raise self._surprise

    def _run(self) -> None:
        try:
            with Caller(self._address) as caller:
                self._work(caller)
        except BaseException as error:  # kept for whoever waits
            self._surprise = error

    def _work(self, caller: Caller) -> None:
        caller.ask(MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), 9)
        member = join_alone(caller, f"bystander-{next(_NUMBERS)}", session_ms=10_000)
        beat = HeartbeatRequest(
            group_id=member.group_id,
            generation_id=member.generation,
            member_id=member.member_id,
        )
        while not self._is_over.is_set():
            value = f"round {self.rounds}"
            self._check(self._ask(caller, beat, 4).error_code)
            offset = self._produce(caller, value)
            self._fetch(caller, offset, value)
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
            self._check(self._ask(caller, request, 9).topics[0].partitions[0].error_code)
            self.rounds += 1
            self._is_over.wait(0.002)

    def _produce(self, caller: Caller, value: str) -> int:
        now = time.time_ns() // 1_000_000
        request = produce_request(new_batch(value, at=now), TOPIC, acks=-1)
        answer = self._ask(caller, request, 9)
        (partition,) = answer.responses[0].partition_responses
        self._check(partition.error_code)
        return int(partition.base_offset)

    def _fetch(self, caller: Caller, offset: int, value: str) -> None:
        answer = self._ask(caller, fetch_request(offset, TOPIC), 12)
        (partition,) = answer.responses[0].partitions
        self._check(partition.error_code)
        assert values_in(partition.records) == [value]

    def _ask(self, caller: Caller, body: object, version: int) -> Any:
        began = time.monotonic()
        answer = caller.ask(body, version)
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        return answer

    @staticmethod
    def _check(error_code: int) -> None:
        assert error_code == 0, ErrorCode(error_code).name
