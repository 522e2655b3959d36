"""A broker under test, Kohort or Apache Kafka, used by raw requests.

Tests set up and inspect brokers with this module, so that they use a client library's producer or
admin client only where they test it.
"""

import itertools
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kohort.node.broker import Address
from kohort.types import (
    BrokerId,
    ErrorCode,
    GroupId,
    MemberId,
    Millis,
    Offset,
    Partition,
    ProducerEpoch,
    ProducerId,
    Topic,
)
from kohort.wire.api.k00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from kohort.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from kohort.wire.api.k15_describe_groups import DescribedGroup, DescribeGroupsRequest
from kohort.wire.api.k16_list_groups import ListGroupsRequest
from kohort.wire.api.k18_api_versions import ApiVersionsRequest
from kohort.wire.api.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest
from kohort.wire.api.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kohort.wire.api.k22_init_producer_id import InitProducerIdRequest
from kohort.wire.api.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kohort.wire.api.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kohort.wire.batch import (
    Batch,
    Codec,
    Header,
    NewBatch,
    NewRecord,
    Record,
    decode,
    encode,
    split,
)
from tests.contract.clients.client_library import CommittedOffset, ProducerRecord, TopicAndPartition
from tests.node.raw_client import RawClient
from tests.wait import wait_until

_NUMBERS = itertools.count()

_ANY_PRODUCER = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=Millis(60_000))

_RUN = f"{os.getpid()}-{time.time_ns() % 10**9}"
"""Unique per process: a broker may outlive one test run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    name: str
    bootstrap_servers: str

    @property
    def address(self) -> Address:
        host, _, port = self.bootstrap_servers.rpartition(":")
        return Address(host=host, port=int(port))

    def call(self) -> RawClient:
        """A connection for raw requests."""
        return RawClient(self.address)

    def wait_for_coordinator(self) -> None:
        """Apache Kafka creates the offsets topic on the first request."""
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=("any",))

        def has_coordinator() -> bool:
            with self.call() as caller:
                (found,) = caller.ask(request, 4).coordinators
            return found.error_code == 0

        wait_until(has_coordinator, 60, "a coordinator")

    def serves(self, api_key: int) -> bool:
        with self.call() as caller:
            answer = caller.ask(ApiVersionsRequest(), 0)
        return api_key in {each.api_key for each in answer.api_keys}

    # Unique names, because tests share brokers.

    def name_topic(self, stem: str = "topic") -> str:
        return f"{stem}-{_RUN}-{next(_NUMBERS)}"

    def name_group(self) -> str:
        return f"group-{_RUN}-{next(_NUMBERS)}"

    # Topics

    def create_topic(
        self,
        partitions: int = 1,
        settings: Mapping[str, object] | None = None,
        name: str | None = None,
        *,
        exists_ok: bool = False,
    ) -> str:
        topic = name or self.name_topic()
        configs = [
            CreatableTopicConfig(name=key, value=f"{given}")
            for key, given in (settings or {}).items()
        ]
        asked = CreatableTopic(
            name=Topic(topic),
            num_partitions=partitions,
            replication_factor=1,
            configs=tuple(configs),
        )
        with self.call() as caller:
            (result,) = caller.ask(CreateTopicsRequest(topics=(asked,)), 7).topics
        is_there = result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and exists_ok
        assert result.error_code == 0 or is_there, result
        self.wait_for_topic(topic, partitions)
        return topic

    def grow_topic(self, topic: str, partitions: int) -> None:
        asked = CreatePartitionsTopic(name=Topic(topic), count=partitions, assignments=None)
        with self.call() as caller:
            request = CreatePartitionsRequest(topics=(asked,), timeout_ms=Millis(20_000))
            (result,) = caller.ask(request, 3).results
        assert result.error_code == 0, result
        self.wait_for_topic(topic, partitions)

    def new_producer_id(self) -> int:
        """Apache Kafka has no producer ids in the first moments after its start."""

        def find_id() -> list[int]:
            with self.call() as caller:
                answer = caller.ask(_ANY_PRODUCER, 4)
            return [] if answer.error_code else [answer.producer_id]

        (found,) = wait_until(find_id, 20, "a producer id")
        return found

    def fill(
        self,
        topic: str,
        records: Sequence[ProducerRecord],
        codec: Codec = Codec.NONE,
        *,
        producer_id: int = -1,
        sequence: int = -1,
    ) -> list[int]:
        """Append one batch per partition; returns the offset of every record."""
        by_partition: dict[int, list[ProducerRecord]] = {}
        for record in records:
            by_partition.setdefault(record.partition, []).append(record)
        firsts = {
            partition: self.append(
                topic, partition, _batch(some, codec, producer_id=producer_id, sequence=sequence)
            )
            for partition, some in by_partition.items()
        }
        counters = {partition: itertools.count(first) for partition, first in firsts.items()}
        return [next(counters[record.partition]) for record in records]

    def append(self, topic: str, partition: int, batch: bytes) -> int:
        """Returns the offset of the first record of the batch."""
        answer = self.produce(topic, partition, batch)
        assert answer.error_code == 0, answer
        return int(answer.base_offset)

    def produce(self, topic: str, partition: int, batch: bytes) -> PartitionProduceResponse:
        data = PartitionProduceData(index=partition, records=batch)
        asked = ProduceRequest(
            acks=-1,
            timeout_ms=Millis(20_000),
            topic_data=(TopicProduceData(name=Topic(topic), partition_data=(data,)),),
        )
        with self.call() as caller:
            (answered,) = caller.ask(asked, 9).responses
        (answer,) = answered.partition_responses
        assert isinstance(answer, PartitionProduceResponse)
        return answer

    def wait_for_topic(self, topic: str, partitions: int) -> None:
        """Apache Kafka responds when the topic is in its metadata log, and elects leaders later."""

        def is_led() -> bool:
            found = self._find_offsets(topic, range(partitions), -1)
            return all(each.error_code == 0 for each in found)

        wait_until(is_led, 20, f"a leader of {topic}")

    def wait_until_gone(self, topic: str) -> None:
        gone = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)

        def is_gone() -> bool:
            (found,) = self._find_offsets(topic, (0,), -1)
            return found.error_code in gone

        wait_until(is_gone, 20, f"{topic} to be deleted")

    def delete_topic(self, topic: str) -> None:
        with self.call() as caller:
            asked = DeleteTopicsRequest(topic_names=(Topic(topic),), timeout_ms=Millis(20_000))
            (result,) = caller.ask(asked, 5).responses
        assert result.error_code == 0, result

    def wait_for_setting(self, topic: str, name: str, value: str) -> None:
        asked = DescribeConfigsRequest(
            resources=(
                DescribeConfigsResource(
                    resource_type=2, resource_name=topic, configuration_keys=(name,)
                ),
            )
        )

        def holds() -> bool:
            with self.call() as caller:
                (found,) = caller.ask(asked, 4).results
            return [each.value for each in found.configs] == [value]

        wait_until(holds, 20, f"{name}={value}")

    # Records

    def offset_range(self, topic: str, partition: int) -> tuple[int, int]:
        (first,) = self._find_offsets(topic, (partition,), -2)
        (last,) = self._find_offsets(topic, (partition,), -1)
        return first.offset, last.offset

    def _find_offsets(
        self, topic: str, partitions: Iterable[int], timestamp: int
    ) -> Sequence[ListOffsetsPartitionResponse]:
        asked = tuple(
            ListOffsetsPartition(partition_index=Partition(each), timestamp=Millis(timestamp))
            for each in partitions
        )
        request = ListOffsetsRequest(
            replica_id=BrokerId(-1), topics=(ListOffsetsTopic(name=Topic(topic), partitions=asked),)
        )
        with self.call() as caller:
            (found,) = caller.ask(request, 5).topics
        answers: Sequence[ListOffsetsPartitionResponse] = found.partitions
        return answers

    def fetch(self, topic: str, partition: int) -> list[Batch]:
        """Every batch of a partition."""
        batches: list[Batch] = []
        offset, end = self.offset_range(topic, partition)
        with self.call() as caller:
            while offset < end:
                asked = FetchPartition(
                    partition=Partition(partition),
                    fetch_offset=Offset(offset),
                    partition_max_bytes=1 << 20,
                )
                request = FetchRequest(
                    max_wait_ms=Millis(1000),
                    min_bytes=1,
                    max_bytes=1 << 20,
                    topics=(FetchTopic(topic=Topic(topic), partitions=(asked,)),),
                )
                ((answer,),) = [each.partitions for each in caller.ask(request, 12).responses]
                assert answer.error_code == 0, answer
                data = answer.records or b""
                found = [decode(data, at) for at, _ in split(data, truncated_ok=True)]
                # A broker sends whole batches, starting with the one that contains the offset.
                batches += [each for each in found if each.header.last_offset >= offset]
                if not found:
                    return batches
                offset = batches[-1].header.last_offset + 1
        return batches

    def records(self, topic: str, partition: int) -> list[Record]:
        return [record for batch in self.fetch(topic, partition) for record in batch.records]

    def delete_records(self, tp: TopicAndPartition, before: int) -> None:
        asked = DeleteRecordsPartition(
            partition_index=Partition(tp.partition), offset=Offset(before)
        )
        request = DeleteRecordsRequest(
            topics=(DeleteRecordsTopic(name=Topic(tp.topic), partitions=(asked,)),),
            timeout_ms=Millis(20_000),
        )
        with self.call() as caller:
            ((answer,),) = [each.partitions for each in caller.ask(request, 2).topics]
        assert answer.error_code == 0, answer

    # Groups

    def describe(self, group: str) -> DescribedGroup:
        with self.call() as caller:
            asked = DescribeGroupsRequest(groups=(GroupId(group),))
            (found,) = caller.ask(asked, 5).groups
        assert isinstance(found, DescribedGroup)
        return found

    def groups(self) -> dict[str, str]:
        """Every group, with its state."""
        with self.call() as caller:
            answer = caller.ask(ListGroupsRequest(), 5)
        assert answer.error_code == 0, answer
        return {each.group_id: each.group_state for each in answer.groups}

    def committed(self, group: str) -> dict[TopicAndPartition, CommittedOffset]:
        asked = OffsetFetchRequestGroup(group_id=GroupId(group), topics=None)
        with self.call() as caller:
            (found,) = caller.ask(OffsetFetchRequest(groups=(asked,)), 8).groups
        assert found.error_code == 0, found
        return {
            TopicAndPartition(topic.name, each.partition_index): CommittedOffset(
                offset=each.committed_offset,
                metadata=each.metadata or "",
                leader_epoch=(
                    None if each.committed_leader_epoch < 0 else each.committed_leader_epoch
                ),
            )
            for topic in found.topics
            for each in topic.partitions
        }

    def commit(
        self,
        group: str,
        to_commit: Mapping[TopicAndPartition, CommittedOffset],
        *,
        retention_ms: int = -1,
    ) -> None:
        """Commit from outside of the group. Only version 2 has a retention time per request."""
        topics = [
            OffsetCommitRequestTopic(
                name=Topic(tp.topic),
                partitions=(
                    OffsetCommitRequestPartition(
                        partition_index=Partition(tp.partition),
                        committed_offset=Offset(committed.offset),
                        committed_metadata=committed.metadata,
                    ),
                ),
            )
            for tp, committed in to_commit.items()
        ]
        asked = OffsetCommitRequest(
            group_id=GroupId(group),
            member_id=MemberId(""),
            retention_time_ms=Millis(retention_ms),
            topics=tuple(topics),
        )
        with self.call() as caller:
            answer = caller.ask(asked, 2)
        errors = {each.error_code for topic in answer.topics for each in topic.partitions}
        assert errors == {0}, answer


def _batch(
    records: Sequence[ProducerRecord], codec: Codec, *, producer_id: int, sequence: int
) -> bytes:
    now = time.time_ns() // 1_000_000
    new = [
        NewRecord(
            key=record.key,
            value=record.value,
            timestamp=Millis(now if record.timestamp_ms is None else record.timestamp_ms),
            headers=tuple(Header(key=name, value=text) for name, text in record.headers),
        )
        for record in records
    ]
    batch = NewBatch(
        records=tuple(new),
        codec=codec,
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(-1 if producer_id < 0 else 0),
        base_sequence=sequence,
    )
    return encode(batch)
