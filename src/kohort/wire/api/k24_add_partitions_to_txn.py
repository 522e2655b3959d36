"""AddPartitionsToTxn, API key 24: adds partitions to a transaction (KIP-98).

Producers use versions up to 3. From version 4 on brokers send it on behalf of producers.

Version notes:
 1  the broker responds before it throttles (KIP-219)
 2  the error PRODUCER_FENCED (KIP-588)
 3  flexible (KIP-482)
 4  several transactions per request; a verify-only mode (KIP-890)
 5  the error TRANSACTION_ABORTABLE (KIP-890)
"""

from kohort.types import Millis, Partition, ProducerEpoch, ProducerId, Topic, TransactionalId
from kohort.wire.schema import array, boolean, int16, int32, int64, message, part, string


@part
class AddPartitionsToTxnTopic:
    name: Topic = string()
    partitions: tuple[Partition, ...] = array("int32")


@part
class AddPartitionsToTxnTransaction:
    transactional_id: TransactionalId = string(since=4)
    producer_id: ProducerId = int64(since=4)
    producer_epoch: ProducerEpoch = int16(since=4)
    verify_only: bool = boolean(since=4)
    topics: tuple[AddPartitionsToTxnTopic, ...] = array(AddPartitionsToTxnTopic, since=4)


@message(api_key=24, versions=(0, 5), flexible_since=3)
class AddPartitionsToTxnRequest:
    transactions: tuple[AddPartitionsToTxnTransaction, ...] = array(
        AddPartitionsToTxnTransaction, since=4
    )
    v3_and_below_transactional_id: TransactionalId = string(until=3)
    v3_and_below_producer_id: ProducerId = int64(until=3)
    v3_and_below_producer_epoch: int = int16(until=3)
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...] = array(
        AddPartitionsToTxnTopic, until=3
    )


@part
class AddPartitionsToTxnPartitionResult:
    partition_index: Partition = int32()
    partition_error_code: int = int16()


@part
class AddPartitionsToTxnTopicResult:
    name: Topic = string()
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...] = array(
        AddPartitionsToTxnPartitionResult
    )


@part
class AddPartitionsToTxnResult:
    transactional_id: TransactionalId = string(since=4)
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...] = array(
        AddPartitionsToTxnTopicResult, since=4
    )


@message(api_key=24, versions=(0, 5), flexible_since=3)
class AddPartitionsToTxnResponse:
    throttle_time_ms: Millis = int32()
    error_code: int = int16(since=4, ignorable=True)
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = array(
        AddPartitionsToTxnResult, since=4
    )
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnTopicResult, ...] = array(
        AddPartitionsToTxnTopicResult, until=3
    )
