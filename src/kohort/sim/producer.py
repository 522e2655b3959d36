"""A producer: numbered records into partitions, one batch of a partition under way at a time.

A batch without an answer is sent again, so that one that is not idempotent may be there twice.
"""

from kohort.client.topic_partition import TopicPartition
from kohort.sim.life import Life
from kohort.sim.node import EPOCH_MS
from kohort.sim.phone import Loss
from kohort.sim.plan import ProducerPlan
from kohort.sim.stage import Stage
from kohort.types import ErrorCode, Millis, Partition, ProducerEpoch, ProducerId, Topic, value
from kohort.wire.api.k00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kohort.wire.api.k22_init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kohort.wire.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NewBatch, NewRecord
from kohort.wire.batch import encode as encode_batch

_REQUEST_MS = 4_000
_RETRY_MS = 300


@value
class _Batch:
    partition: TopicPartition
    texts: tuple[str, ...]
    sequence: int
    producer_id: ProducerId


class Producer:
    def __init__(self, stage: Stage, plan: ProducerPlan, topics: tuple[int, ...]) -> None:
        self._stage = stage
        self.plan = plan
        self._life = Life(stage.timeline)
        self._phone = stage.phone(self._life, plan.name)
        self._chance = stage.dice.named("producer", plan.name)
        self._partitions = [
            TopicPartition(Topic(f"t{topic}"), Partition(index))
            for topic, count in enumerate(topics)
            for index in range(count)
        ]
        self._written = 0
        self._producer_id = NO_PRODUCER_ID
        self._sequences: dict[TopicPartition, int] = {}
        self._pending: dict[TopicPartition, _Batch] = {}
        self._is_working = True
        self._work()

    @property
    def is_done(self) -> bool:
        return not self._pending and not self._is_working

    def grow(self, partition: TopicPartition) -> None:
        """There is another one to write to."""
        self._partitions.append(partition)

    def stop(self) -> None:
        """Write nothing new; what is under way is still brought to its end."""
        self._is_working = False

    def resume(self) -> None:
        if not self._is_working:
            self._is_working = True
            self._work()

    def _work(self) -> None:
        if not self._is_working:
            return
        if self.plan.is_idempotent and self._producer_id == NO_PRODUCER_ID:
            self._introduce()
        else:
            self._write()
        delay_ms = self._chance.uniform(0.2, 1.8) * self.plan.interval_ms
        self._life.later(delay_ms, self._work)

    def _introduce(self) -> None:
        """Ask for an id of its own."""
        body = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=Millis(60_000))

        def take(answer: InitProducerIdResponse) -> None:
            if not answer.error_code:
                self._producer_id = answer.producer_id
                self._sequences.clear()

        self._phone.ask(body, _REQUEST_MS, take, lambda _: None)

    def _write(self) -> None:
        partition = self._chance.choice(self._partitions)
        if partition in self._pending:
            return
        count = self._chance.randint(1, self.plan.records_max)
        texts = tuple(f"{self.plan.name}:{self._written + each}" for each in range(count))
        self._written += count
        sequence = self._sequences.get(partition, 0)
        batch = _Batch(
            partition=partition,
            texts=texts,
            sequence=sequence,
            producer_id=self._producer_id,
        )
        self._sequences[partition] = sequence + count
        self._pending[partition] = batch
        self._send(batch)

    def _send(self, batch: _Batch) -> None:
        topic, index = batch.partition
        data = PartitionProduceData(index=index, records=self._encode(batch))
        body = ProduceRequest(
            acks=self.plan.acks,
            timeout_ms=Millis(_REQUEST_MS),
            topic_data=(TopicProduceData(name=topic, partition_data=(data,)),),
        )
        asked_at = self._stage.timeline.now
        self._phone.ask(
            body,
            _REQUEST_MS,
            lambda answer: self._on_answer(batch, answer, asked_at),
            lambda loss: self._try_again(batch, loss),
        )

    def _encode(self, batch: _Batch) -> bytes:
        is_idempotent = batch.producer_id != NO_PRODUCER_ID
        now = Millis(EPOCH_MS + self._stage.timeline.now_ms)
        return encode_batch(
            NewBatch(
                records=tuple(
                    NewRecord(key=None, value=text.encode(), timestamp=now) for text in batch.texts
                ),
                producer_id=batch.producer_id,
                producer_epoch=ProducerEpoch(0) if is_idempotent else NO_PRODUCER_EPOCH,
                base_sequence=batch.sequence if is_idempotent else NO_SEQUENCE,
            )
        )

    def _on_answer(self, batch: _Batch, answer: ProduceResponse, asked_at: int) -> None:
        told = answer.responses[0].partition_responses[0]
        if not told.error_code:
            del self._pending[batch.partition]
            self._stage.court.acknowledged(
                batch.partition, told.base_offset, batch.texts, asked_at, self.plan.acks
            )
            where = f"{batch.partition.topic}-{batch.partition.partition}@{told.base_offset}"
            self._stage.trace.tell(self.plan.name, "acked", where, *batch.texts)
        elif told.error_code in (
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            ErrorCode.UNKNOWN_PRODUCER_ID,
        ):
            # The node has forgotten what it once knew; begin anew, without what it had promised.
            self._stage.court.records.sequence_lost(batch.partition)
            del self._pending[batch.partition]
            self._producer_id = NO_PRODUCER_ID
        else:
            self._try_again(batch, ErrorCode(told.error_code).name)

    def _try_again(self, batch: _Batch, why: Loss | str) -> None:
        self._stage.trace.tell(self.plan.name, "lost", batch.texts[0], why)
        self._life.later(_RETRY_MS, lambda: self._send(batch))
