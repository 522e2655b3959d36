"""A full disk: what needs room is refused, what needs none goes on, and so does the node."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kohort.log.osdisk import OsDisk
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
from tests.log.disks import FullDisk
from tests.node.asking import Scene, name_of, new_batch, produce_request, values_in

PLENTY = 1 << 30


class Filling:
    """A scene on a disk that can be filled and emptied."""

    def __init__(self, where: Path) -> None:
        self._disk = FullDisk(OsDisk(where), PLENTY)
        self.scene = Scene(self._disk)
        self.scene.create("t")
        self.scene.produce(new_batch("before"))

    def fill(self) -> None:
        self._disk.room = 0

    def empty(self) -> None:
        self._disk.room = PLENTY


@pytest.fixture
def filling(tmp_path: Path) -> Iterator[Filling]:
    filling = Filling(tmp_path)
    yield filling
    filling.empty()
    filling.scene.close()


def test_nothing_is_taken_while_it_is_full_and_all_is_well_afterwards(filling: Filling) -> None:
    scene = filling.scene
    filling.fill()
    refused = scene.produce(new_batch("lost"), acks=-1)
    filling.empty()
    taken = scene.produce(new_batch("after"), acks=-1)

    assert name_of(refused.error_code) == "KAFKA_STORAGE_ERROR"
    assert refused.error_message == "No space left on device"
    assert (taken.error_code, taken.base_offset) == (0, 1)
    assert values_in(scene.fetch().records) == ["before", "after"]


def test_reading_needs_no_room(filling: Filling) -> None:
    filling.fill()

    assert values_in(filling.scene.fetch().records) == ["before"]


def test_a_producer_without_acks_is_hung_up_on(filling: Filling) -> None:
    filling.fill()

    pending = filling.scene.ask(produce_request(new_batch("lost"), acks=0), 12)

    assert "KAFKA_STORAGE_ERROR" in (pending.request.hang_up_reason or "")


def test_whatever_must_be_written_down_is_refused(filling: Filling) -> None:
    scene = filling.scene
    asked = MetadataRequestTopic(name=Topic("new"))
    creatable = CreatableTopic(name=Topic("new"), num_partitions=1, replication_factor=1)
    growing = CreatePartitionsTopic(name=Topic("t"), count=2, assignments=None)
    change = AlterableConfig(name="retention.ms", config_operation=0, value="1")
    altering = AlterConfigsResource(resource_type=2, resource_name="t", configs=(change,))
    filling.fill()

    errors = {
        "ask": scene.answer(MetadataRequest(topics=(asked,)), 9).topics[0].error_code,
        "create": scene.answer(CreateTopicsRequest(topics=(creatable,)), 7).topics[0].error_code,
        "grow": scene.answer(CreatePartitionsRequest(topics=(growing,)), 3).results[0].error_code,
        "alter": scene.answer(IncrementalAlterConfigsRequest(resources=(altering,)), 1)
        .responses[0]
        .error_code,
        "delete": scene.answer(DeleteTopicsRequest(topic_names=(Topic("t"),)), 5)
        .responses[0]
        .error_code,
        "init": scene.answer(InitProducerIdRequest(transactional_id=None), 4).error_code,
    }

    assert {what: name_of(code) for what, code in errors.items()} == dict.fromkeys(
        errors, "KAFKA_STORAGE_ERROR"
    )


def test_what_was_refused_can_be_done_once_there_is_room(filling: Filling) -> None:
    scene = filling.scene
    filling.fill()
    scene.create("new")
    filling.empty()

    assert scene.create("new").error_code == 0
    assert scene.produce(new_batch("a"), "new").base_offset == 0
