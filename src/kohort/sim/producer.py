"""A simulated producer: numbered records, one batch in flight per partition.

A batch without a response is sent again, so without idempotence it may be appended twice.
"""

from kohort.protocol.errors import ProtocolError
from kohort.sim.context import SimContext
from kohort.sim.node import EPOCH_MS
from kohort.sim.plan import ProducerPlan
from kohort.sim.process import ClientProcess
from kohort.types import (
    ErrorCode,
    Millis,
    Partition,
    ProducerEpoch,
    ProducerId,
    Topic,
    TopicPartition,
    value,
)
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

_SLOW_MS = 10 * 3_600_000
"""How far producers' clocks are behind. The node's clock may be set back, and as in Kafka, the node
refuses timestamps that are more than an hour ahead of its own. Set forward it may be by half a day:
more would expire producer ids, which are kept for a day after their last timestamp."""


@value
class _Batch:
    partition: TopicPartition
    texts: tuple[str, ...]
    sequence: int
    producer_id: ProducerId


class SimulatedProducer:
    def __init__(self, context: SimContext, plan: ProducerPlan, topics: tuple[int, ...]) -> None:
        self._context = context
        self.plan = plan
        self._process = ClientProcess(context.scheduler)
        self._connection = context.connection(self._process, plan.name)
        self._rng = context.streams.named("producer", plan.name)
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
        """Write to this new partition too."""
        self._partitions.append(partition)

    def stop(self) -> None:
        """Write no new batches; batches in flight are still retried."""
        self._is_working = False

    def resume(self) -> None:
        if not self._is_working:
            self._is_working = True
            self._work()

    def _work(self) -> None:
        if not self._is_working:
            return
        if self.plan.is_idempotent and self._producer_id == NO_PRODUCER_ID:
            self._init_producer_id()
        else:
            self._write()
        delay_ms = self._rng.uniform(0.2, 1.8) * self.plan.interval_ms
        self._process.later(delay_ms, self._work)

    def _init_producer_id(self) -> None:
        """Request a producer id."""
        body = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=Millis(60_000))

        def take(response: InitProducerIdResponse) -> None:
            if not response.error_code:
                self._producer_id = response.producer_id
                self._sequences.clear()

        self._connection.send(body, _REQUEST_MS, take, lambda _: None)

    def _write(self) -> None:
        partition = self._rng.choice(self._partitions)
        if partition in self._pending:
            return
        count = self._rng.randint(1, self.plan.records_max)
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
        asked_at = self._context.scheduler.now
        self._connection.send(
            body,
            _REQUEST_MS,
            lambda response: self._on_response(batch, response, asked_at),
            lambda loss: self._try_again(batch, loss),
        )

    def _encode(self, batch: _Batch) -> bytes:
        is_idempotent = batch.producer_id != NO_PRODUCER_ID
        now = Millis(EPOCH_MS - _SLOW_MS + self._context.scheduler.now_ms)
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

    def _on_response(self, batch: _Batch, response: ProduceResponse, asked_at: int) -> None:
        reported = response.responses[0].partition_responses[0]
        if not reported.error_code:
            del self._pending[batch.partition]
            self._context.checkers.acknowledged(
                batch.partition, reported.base_offset, batch.texts, asked_at, self.plan.acks
            )
            where = f"{batch.partition.topic}-{batch.partition.partition}@{reported.base_offset}"
            self._context.trace.log(self.plan.name, "acked", where, *batch.texts)
        elif reported.error_code in (
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            ErrorCode.UNKNOWN_PRODUCER_ID,
        ):
            # The node has lost its producer state; start again with a new producer id.
            self._context.checkers.records.sequence_lost(batch.partition)
            del self._pending[batch.partition]
            self._producer_id = NO_PRODUCER_ID
        else:
            self._try_again(batch, ErrorCode(reported.error_code).name)

    def _try_again(self, batch: _Batch, why: ProtocolError | str) -> None:
        self._context.trace.log(self.plan.name, "lost", batch.texts[0], why)
        self._process.later(_RETRY_MS, lambda: self._send(batch))
