"""Metrics: counting, reading and limits on labels."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kohort.log.os_disk import OsDisk
from kohort.node.metrics import OTHER, Histogram, Metrics
from kohort.node.metrics_table import METRICS
from kohort.node.response_errors import ERROR_FINDERS
from kohort.types import ErrorCode, GroupId, Topic
from kohort.wire.api.k00_produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from kohort.wire.api.k03_metadata import MetadataResponse
from kohort.wire.api.k12_heartbeat import HeartbeatResponse
from kohort.wire.api.k18_api_versions import ApiVersionsResponse
from kohort.wire.api.k20_delete_topics import DeleteTopicsRequest
from tests.log.faulty_disks import FullDisk
from tests.node.broker_harness import BrokerHarness, new_batch
from tests.node.group_setup import AT_ONCE, commit, delete_group, join_alone, leave, share
from tests.node.metrics_reader import labels_of, metric_value, page_of
from tests.node.raw_client import join_request


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., BrokerHarness]]:
    """A harness with some settings, dots written as underscores."""
    scenes: list[BrokerHarness] = []

    def make(**settings: str) -> BrokerHarness:
        given = {name.replace("_", "."): text for name, text in settings.items()}
        scenes.append(BrokerHarness(tmp_path / str(len(scenes)), AT_ONCE | given))
        return scenes[-1]

    yield make
    for harness in scenes:
        harness.close()


# The table


def test_metric_names_follow_prometheus_conventions() -> None:
    for metric in METRICS:
        assert metric.name.startswith("kohort_")
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert metric.name.endswith("_seconds") or metric.kind != "histogram"
        assert metric.meaning.endswith(".")
    assert len({metric.name for metric in METRICS}) == len(METRICS)


# Groups


def test_rebalances_are_counted_by_group_and_trigger(make: Callable[..., BrokerHarness]) -> None:
    harness = make()
    harness.create("t")
    leave(harness, join_alone(harness, "g", share("t", 0)))
    join_alone(harness, "g")

    page = page_of(harness)

    rebalances = "kohort_group_rebalances_total"
    assert metric_value(page, rebalances, group="g", trigger="member-joined") == 2
    assert metric_value(page, rebalances, group="g", trigger="member-left") == 1
    assert metric_value(page, "kohort_group_completed_rebalances_total") == 2
    assert metric_value(page, "kohort_rebalances_ended_total", ending="empty") == 1
    assert metric_value(page, "kohort_member_departures_total", group="g", departure="left") == 1
    assert metric_value(page, "kohort_group_members", group="g") == 1
    assert metric_value(page, "kohort_groups", state="Stable") == 1
    assert metric_value(page, "kohort_groups", state="Empty") == 0


def test_rebalance_and_its_phases_are_timed(make: Callable[..., BrokerHarness]) -> None:
    harness = make(group_initial_rebalance_delay_ms="3000")
    returned = harness.answer(join_request("g", session_ms=10_000), 9)
    harness.ask(join_request("g", returned.member_id, session_ms=10_000), 9)
    harness.advance(3_000)
    harness.advance(10_000)

    page = page_of(harness)

    labels = {"trigger": "member-joined"}
    assert metric_value(page, "kohort_rebalance_join_seconds_sum", **labels) == 3.0
    assert metric_value(page, "kohort_rebalance_sync_seconds_sum", **labels) == 10.0
    assert metric_value(page, "kohort_rebalance_seconds_sum", **labels) == 13.0
    assert metric_value(page, "kohort_rebalance_seconds_bucket", le="10.0", **labels) == 0
    assert metric_value(page, "kohort_rebalance_seconds_bucket", le="20.0", **labels) == 1


def test_members_are_counted_after_a_restart(make: Callable[..., BrokerHarness]) -> None:
    harness = make()
    join_alone(harness, "g")

    harness.restart()

    page = page_of(harness)
    assert metric_value(page, "kohort_group_members", group="g") == 1
    assert metric_value(page, "kohort_coordinator_phase", phase="active") == 1
    assert metric_value(page, "kohort_partition_load_seconds", partition="0") == 0
    assert metric_value(page, "kohort_records_skipped_total") == 0


# Offsets


def test_offset_commits_deletions_and_expirations_are_counted(
    make: Callable[..., BrokerHarness],
) -> None:
    harness = make(offsets_retention_minutes="1")
    for name in ("kept", "dropped"):
        harness.create(name, 3)
    commit(harness, "g", "kept", 0, 1, 2)
    commit(harness, "g", "kept", 0)
    commit(harness, "g", "dropped", 0, 1)
    commit(harness, "h", "kept", 0)
    before = page_of(harness)
    harness.answer(DeleteTopicsRequest(topic_names=(Topic("dropped"),)), 5)
    assert delete_group(harness, "h") == "NONE"
    deleted = page_of(harness)
    harness.advance(20 * 60_000)
    expired = page_of(harness)

    names = [f"kohort_offset_{each}_total" for each in ("commits", "deletions", "expirations")]
    counts = [
        [metric_value(page, name) for name in ("kohort_offsets", *names)]
        for page in (before, deleted, expired)
    ]
    assert counts == [[6, 7, 0, 0], [3, 7, 3, 0], [0, 7, 3, 3]]


def test_refused_commits_are_counted_by_group_and_error(make: Callable[..., BrokerHarness]) -> None:
    harness = make()
    harness.create("t")
    gone = join_alone(harness, "g")
    leave(harness, gone)
    for _ in range(2):
        commit(harness, "g", "t", 0, member=gone)
    commit(harness, "nowhere", "t", 0, member=gone)

    page = page_of(harness)

    refused = "kohort_commits_refused_total"
    assert metric_value(page, refused, group="g", error="UNKNOWN_MEMBER_ID") == 2
    assert metric_value(page, refused, group=OTHER, error="GROUP_ID_NOT_FOUND") == 1


def test_failed_appends_are_counted(tmp_path: Path) -> None:
    disk = FullDisk(OsDisk(tmp_path), 1 << 30)
    harness = BrokerHarness(disk, AT_ONCE)
    harness.create("t")
    disk.free_bytes = 0
    commit(harness, "g", "t", 0)
    page = page_of(harness)
    disk.free_bytes = 1 << 30
    harness.close()

    assert metric_value(page, "kohort_records_not_kept_total", error="KAFKA_STORAGE_ERROR") == 1
    assert metric_value(page, "kohort_events_lost_total") == 1
    assert metric_value(page, "kohort_offset_commits_total") == 0


# Labels


def test_group_labels_are_limited(make: Callable[..., BrokerHarness]) -> None:
    harness = make(kohort_metrics_groups_max="2")
    for name in ("a", "b", "c", "d"):
        join_alone(harness, name)

    page = page_of(harness)

    assert labels_of(page, "kohort_group_members", "group") == ["a", "b", OTHER]
    assert metric_value(page, "kohort_group_members", group=OTHER) == 2
    joined = {"trigger": "member-joined"}
    assert metric_value(page, "kohort_group_rebalances_total", group=OTHER, **joined) == 2


def test_deleting_a_group_frees_its_label(make: Callable[..., BrokerHarness]) -> None:
    harness = make(kohort_metrics_groups_max="1")
    leave(harness, join_alone(harness, "a"))
    assert delete_group(harness, "a") == "NONE"
    page_of(harness)
    join_alone(harness, "b")

    assert labels_of(page_of(harness), "kohort_group_rebalances_total", "group") == ["b"]


def test_simple_groups_have_no_label(make: Callable[..., BrokerHarness]) -> None:
    harness = make()
    harness.create("t")
    commit(harness, "simple", "t", 0)

    page = page_of(harness)

    assert labels_of(page, "kohort_group_members", "group") == []
    assert metric_value(page, "kohort_groups", state="Empty") == 1


def test_partition_labels_are_limited(make: Callable[..., BrokerHarness]) -> None:
    harness = make(kohort_metrics_partitions_max="2")
    harness.create("t", 3)
    for partition in range(3):
        harness.produce(new_batch("a", "b"), partition=partition)

    page = page_of(harness)

    ends = {labels: value for (name, labels), value in page.items() if name.endswith("end_offset")}
    assert len(ends) == 3
    assert metric_value(page, "kohort_log_end_offset", topic=OTHER, partition=OTHER) == 4


def test_label_values_are_escaped(make: Callable[..., BrokerHarness]) -> None:
    harness = make()
    join_alone(harness, 'a "b"\n\\c')

    assert labels_of(page_of(harness), "kohort_group_members", "group") == ['a "b"\n\\c']


def test_only_existing_groups_get_a_label() -> None:
    living = {GroupId("a"), GroupId("b")}
    metrics = Metrics(1, living)

    assert metrics.label(GroupId("foreign")) == OTHER
    metrics.for_group(GroupId("a"))
    assert metrics.label(GroupId("b")) == OTHER
    living.remove(GroupId("a"))
    metrics.remove_deleted_groups()
    assert metrics.label(GroupId("b")) == "b"


# Requests


def find_error(response: object) -> int:
    return ERROR_FINDERS[type(response)](response)


def test_first_error_of_a_response_is_found_at_any_depth() -> None:
    refused = PartitionProduceResponse(error_code=ErrorCode.MESSAGE_TOO_LARGE)
    fine = TopicProduceResponse(partition_responses=(PartitionProduceResponse(),))
    guilty = TopicProduceResponse(partition_responses=(PartitionProduceResponse(), refused))

    assert find_error(ProduceResponse(responses=(fine, guilty))) == ErrorCode.MESSAGE_TOO_LARGE
    assert find_error(ProduceResponse(responses=(fine,))) == 0
    assert find_error(ProduceResponse()) == 0
    assert find_error(HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)) == 25
    assert find_error(MetadataResponse()) == 0
    assert find_error(ApiVersionsResponse()) == 0


def test_histogram_bounds_are_inclusive() -> None:
    histogram = Histogram((1.0, 2.0))
    for amount in (0.5, 1.0, 1.5, 2.0, 9.0):
        histogram.add(amount)

    assert histogram.counts == [2, 2, 1]
    assert histogram.total == 14.0
