"""A full disk: writes are refused, reads and the node continue."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.log.os_disk import OsDisk
from kohort.types import Topic
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest
from kohort.wire.api.k22_init_producer_id import InitProducerIdRequest
from kohort.wire.api.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kohort.wire.api.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.log.faulty_disks import FullDisk
from tests.node.broker_harness import BrokerHarness, name_of, new_batch, produce_request, values_in

PLENTY = 1 << 30


class Filling:
    """A harness on a disk that can be filled and emptied."""

    def __init__(self, where: Path) -> None:
        self._disk = FullDisk(OsDisk(where), PLENTY)
        self.harness = BrokerHarness(self._disk)
        self.harness.create("t")
        self.harness.produce(new_batch("before"))

    def fill(self) -> None:
        self._disk.free_bytes = 0

    def empty(self) -> None:
        self._disk.free_bytes = PLENTY


@pytest.fixture
def filling(tmp_path: Path) -> Iterator[Filling]:
    filling = Filling(tmp_path)
    yield filling
    filling.empty()
    filling.harness.close()


def test_writes_fail_while_the_disk_is_full_and_succeed_afterwards(filling: Filling) -> None:
    harness = filling.harness
    filling.fill()
    refused = harness.produce(new_batch("lost"), acks=-1)
    filling.empty()
    taken = harness.produce(new_batch("after"), acks=-1)

    assert name_of(refused.error_code) == "KAFKA_STORAGE_ERROR"
    assert refused.error_message == "No space left on device"
    assert (taken.error_code, taken.base_offset) == (0, 1)
    assert values_in(harness.fetch().records) == ["before", "after"]


def test_reads_work_on_a_full_disk(filling: Filling) -> None:
    filling.fill()

    assert values_in(filling.harness.fetch().records) == ["before"]


def test_full_disk_disconnects_a_producer_with_acks_0(filling: Filling) -> None:
    filling.fill()

    pending = filling.harness.ask(produce_request(new_batch("lost"), acks=0), 12)

    assert "KAFKA_STORAGE_ERROR" in (pending.request.disconnect_reason or "")


def test_every_write_request_is_refused_with_a_storage_error(filling: Filling) -> None:
    harness = filling.harness
    asked = MetadataRequestTopic(name=Topic("new"))
    creatable = CreatableTopic(name=Topic("new"), num_partitions=1, replication_factor=1)
    growing = CreatePartitionsTopic(name=Topic("t"), count=2, assignments=None)
    change = AlterableConfig(name="retention.ms", config_operation=0, value="1")
    altering = AlterConfigsResource(resource_type=2, resource_name="t", configs=(change,))
    filling.fill()

    errors = {
        "ask": harness.answer(MetadataRequest(topics=(asked,)), 9).topics[0].error_code,
        "create": harness.answer(CreateTopicsRequest(topics=(creatable,)), 7).topics[0].error_code,
        "grow": harness.answer(CreatePartitionsRequest(topics=(growing,)), 3).results[0].error_code,
        "alter": harness.answer(IncrementalAlterConfigsRequest(resources=(altering,)), 1)
        .responses[0]
        .error_code,
        "delete": harness.answer(DeleteTopicsRequest(topic_names=(Topic("t"),)), 5)
        .responses[0]
        .error_code,
        "init": harness.answer(InitProducerIdRequest(transactional_id=None), 4).error_code,
    }

    assert {what: name_of(code) for what, code in errors.items()} == dict.fromkeys(
        errors, "KAFKA_STORAGE_ERROR"
    )


def test_refused_requests_succeed_when_space_is_free(filling: Filling) -> None:
    harness = filling.harness
    filling.fill()
    harness.create("new")
    filling.empty()

    assert harness.create("new").error_code == 0
    assert harness.produce(new_batch("a"), "new").base_offset == 0
