"""A node with a large `__consumer_offsets` serves topics while it loads groups."""

import time
from pathlib import Path

import pytest

from kohort.types import Generation, GroupId, Offset, Partition
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
from kohort.wire.api.k19_create_topics import CreatableTopic, CreateTopicsRequest
from tests.node.broker_harness import fetch_request, new_batch, produce_request
from tests.node.kill_workers import LOADING, TOPIC
from tests.node.raw_client import RawClient, SentRequest
from tests.node.served_node import ServedNode

PARTITIONS = 50
GROUPS = 400
ROUNDS = 10
"""Commits per group and partition: 200,000 commits in all."""

SETTINGS = {"kohort.durability": "os"}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a node has worked for long, and was killed."""
    directory = tmp_path_factory.mktemp("history")
    with ServedNode(directory, SETTINGS) as served, RawClient(served.address) as client:
        topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
        assert client.ask(CreateTopicsRequest(topics=(topic,)), 7).topics[0].error_code == 0
        for number in range(ROUNDS):
            waiting: list[SentRequest] = []
            for group in range(GROUPS):
                waiting.append(client.send(commit_of(group, number), 8))
                if len(waiting) > 50:
                    client.receive(waiting.pop(0))
            for asked in waiting:
                client.receive(asked)
        served.kill()
    return directory


def commit_of(group: int, number: int) -> OffsetCommitRequest:
    partitions = tuple(
        OffsetCommitRequestPartition(
            partition_index=Partition(index),
            committed_offset=Offset(number * 1000 + index),
            # Never twice the same: what is repeated would be read too quickly to be noticed.
            committed_metadata=f"{number}",
        )
        for index in range(PARTITIONS)
    )
    return OffsetCommitRequest(
        group_id=GroupId(f"group-{group}"),
        generation_id_or_member_epoch=Generation(-1),
        topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=partitions),),
    )


ASK = OffsetFetchRequest(
    groups=(OffsetFetchRequestGroup(group_id=GroupId("group-1"), topics=None),)
)


def error_of(client: RawClient) -> int:
    """What a group is answered now."""
    code: int = client.ask(ASK, 8).groups[0].error_code
    return code


def test_topics_are_served_during_loading_and_groups_report_loading(directory: Path) -> None:
    slowest_s = 0.0
    errors: list[int] = []

    with ServedNode(directory, SETTINGS) as served, RawClient(served.address) as client:
        began = time.monotonic()
        while not errors or errors[-1] == LOADING:
            asked_at = time.monotonic()
            errors.append(error_of(client))
            now = time.time_ns() // 1_000_000
            produced = client.ask(produce_request(new_batch("x", at=now), TOPIC), 9)
            assert produced.responses[0].partition_responses[0].error_code == 0
            fetched = client.ask(fetch_request(0, TOPIC), 12)
            assert fetched.responses[0].partitions[0].records
            slowest_s = max(slowest_s, time.monotonic() - asked_at)
        loaded_s = time.monotonic() - began
        mebibytes = served.resident_bytes >> 20
        print(f"{loaded_s:.1f} s to load, slowest round {slowest_s:.3f} s, {mebibytes} MiB")

        assert errors[0] == LOADING
        assert errors[-1] == 0
        assert slowest_s < loaded_s / 2
        assert mebibytes < 300
        check_offsets(client)
        assert served.stop() == 0


def check_offsets(client: RawClient) -> None:
    indexes = tuple(Partition(index) for index in range(PARTITIONS))
    topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=indexes)
    groups = tuple(
        OffsetFetchRequestGroup(group_id=GroupId(f"group-{group}"), topics=(topic,))
        for group in range(GROUPS)
    )
    answer = client.ask(OffsetFetchRequest(groups=groups), 8)
    expected = [(ROUNDS - 1) * 1000 + index for index in indexes]
    for group in answer.groups:
        assert [each.committed_offset for each in group.topics[0].partitions] == expected


def test_node_can_be_stopped_during_loading(directory: Path) -> None:
    with ServedNode(directory, SETTINGS) as served, RawClient(served.address) as client:
        assert error_of(client) == LOADING

        assert served.stop() == 0
        assert "Traceback" not in served.log
