"""The figures: counted where things happen, read when asked for, and bounded in number."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kohort.log.osdisk import OsDisk
from kohort.node.faults import FINDERS
from kohort.node.metrics import OTHER, Figures, Histogram
from kohort.node.metrics_table import METRICS
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
from tests.log.disks import FullDisk
from tests.node.asking import Scene, new_batch
from tests.node.calling import join_request
from tests.node.figures import figure, labels_of, page_of
from tests.node.grouping import AT_ONCE, commit, delete_group, join_alone, leave, share


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    """A scene with some settings, dots written as underscores."""
    scenes: list[Scene] = []

    def make(**settings: str) -> Scene:
        given = {name.replace("_", "."): text for name, text in settings.items()}
        scenes.append(Scene(tmp_path / str(len(scenes)), AT_ONCE | given))
        return scenes[-1]

    yield make
    for scene in scenes:
        scene.close()


# The table


def test_names_follow_the_custom_of_their_kind() -> None:
    for metric in METRICS:
        assert metric.name.startswith("kohort_")
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert metric.name.endswith("_seconds") or metric.kind != "histogram"
        assert metric.meaning.endswith(".")
    assert len({metric.name for metric in METRICS}) == len(METRICS)


# Groups


def test_a_groups_rebalances_are_counted_by_their_trigger(make: Callable[..., Scene]) -> None:
    scene = make()
    scene.create("t")
    leave(scene, join_alone(scene, "g", share("t", 0)))
    join_alone(scene, "g")

    page = page_of(scene)

    rebalances = "kohort_group_rebalances_total"
    assert figure(page, rebalances, group="g", trigger="member-joined") == 2
    assert figure(page, rebalances, group="g", trigger="member-left") == 1
    assert figure(page, "kohort_group_completed_rebalances_total") == 2
    assert figure(page, "kohort_rebalances_ended_total", ending="empty") == 1
    assert figure(page, "kohort_member_departures_total", group="g", departure="left") == 1
    assert figure(page, "kohort_group_members", group="g") == 1
    assert figure(page, "kohort_groups", state="Stable") == 1
    assert figure(page, "kohort_groups", state="Empty") == 0


def test_a_rebalance_is_timed_as_a_whole_and_by_its_phases(make: Callable[..., Scene]) -> None:
    scene = make(group_initial_rebalance_delay_ms="3000")
    told = scene.answer(join_request("g", session_ms=10_000), 9)
    scene.ask(join_request("g", told.member_id, session_ms=10_000), 9)
    scene.advance(3_000)
    scene.advance(10_000)

    page = page_of(scene)

    labels = {"trigger": "member-joined"}
    assert figure(page, "kohort_rebalance_join_seconds_sum", **labels) == 3.0
    assert figure(page, "kohort_rebalance_sync_seconds_sum", **labels) == 10.0
    assert figure(page, "kohort_rebalance_seconds_sum", **labels) == 13.0
    assert figure(page, "kohort_rebalance_seconds_bucket", le="10.0", **labels) == 0
    assert figure(page, "kohort_rebalance_seconds_bucket", le="20.0", **labels) == 1


def test_members_are_seen_again_after_a_restart(make: Callable[..., Scene]) -> None:
    scene = make()
    join_alone(scene, "g")

    scene.restart()

    page = page_of(scene)
    assert figure(page, "kohort_group_members", group="g") == 1
    assert figure(page, "kohort_coordinator_phase", phase="active") == 1
    assert figure(page, "kohort_partition_load_seconds", partition="0") == 0
    assert figure(page, "kohort_records_skipped_total") == 0


# Offsets


def test_offsets_are_counted_as_they_come_and_go(make: Callable[..., Scene]) -> None:
    scene = make(offsets_retention_minutes="1")
    for name in ("kept", "dropped"):
        scene.create(name, 3)
    commit(scene, "g", "kept", 0, 1, 2)
    commit(scene, "g", "kept", 0)
    commit(scene, "g", "dropped", 0, 1)
    commit(scene, "h", "kept", 0)
    before = page_of(scene)
    scene.answer(DeleteTopicsRequest(topic_names=(Topic("dropped"),)), 5)
    assert delete_group(scene, "h") == "NONE"
    deleted = page_of(scene)
    scene.advance(20 * 60_000)
    expired = page_of(scene)

    names = [f"kohort_offset_{each}_total" for each in ("commits", "deletions", "expirations")]
    counts = [
        [figure(page, name) for name in ("kohort_offsets", *names)]
        for page in (before, deleted, expired)
    ]
    assert counts == [[6, 7, 0, 0], [3, 7, 3, 0], [0, 7, 3, 3]]


def test_refused_commits_are_counted_by_group_and_error(make: Callable[..., Scene]) -> None:
    scene = make()
    scene.create("t")
    gone = join_alone(scene, "g")
    leave(scene, gone)
    for _ in range(2):
        commit(scene, "g", "t", 0, member=gone)
    commit(scene, "nowhere", "t", 0, member=gone)

    page = page_of(scene)

    refused = "kohort_commits_refused_total"
    assert figure(page, refused, group="g", error="UNKNOWN_MEMBER_ID") == 2
    assert figure(page, refused, group=OTHER, error="GROUP_ID_NOT_FOUND") == 1


def test_what_a_full_disk_refuses_is_counted(tmp_path: Path) -> None:
    disk = FullDisk(OsDisk(tmp_path), 1 << 30)
    scene = Scene(disk, AT_ONCE)
    scene.create("t")
    disk.room = 0
    commit(scene, "g", "t", 0)
    page = page_of(scene)
    disk.room = 1 << 30
    scene.close()

    assert figure(page, "kohort_records_not_kept_total", error="KAFKA_STORAGE_ERROR") == 1
    assert figure(page, "kohort_events_lost_total") == 1
    assert figure(page, "kohort_offset_commits_total") == 0


# Labels


def test_only_so_many_groups_have_labels_of_their_own(make: Callable[..., Scene]) -> None:
    scene = make(kohort_metrics_groups_max="2")
    for name in ("a", "b", "c", "d"):
        join_alone(scene, name)

    page = page_of(scene)

    assert labels_of(page, "kohort_group_members", "group") == ["a", "b", OTHER]
    assert figure(page, "kohort_group_members", group=OTHER) == 2
    joined = {"trigger": "member-joined"}
    assert figure(page, "kohort_group_rebalances_total", group=OTHER, **joined) == 2


def test_a_deleted_group_makes_room_for_another(make: Callable[..., Scene]) -> None:
    scene = make(kohort_metrics_groups_max="1")
    leave(scene, join_alone(scene, "a"))
    assert delete_group(scene, "a") == "NONE"
    page_of(scene)
    join_alone(scene, "b")

    assert labels_of(page_of(scene), "kohort_group_rebalances_total", "group") == ["b"]


def test_simple_groups_take_no_labels(make: Callable[..., Scene]) -> None:
    scene = make()
    scene.create("t")
    commit(scene, "simple", "t", 0)

    page = page_of(scene)

    assert labels_of(page, "kohort_group_members", "group") == []
    assert figure(page, "kohort_groups", state="Empty") == 1


def test_only_so_many_partitions_have_labels_of_their_own(make: Callable[..., Scene]) -> None:
    scene = make(kohort_metrics_partitions_max="2")
    scene.create("t", 3)
    for partition in range(3):
        scene.produce(new_batch("a", "b"), partition=partition)

    page = page_of(scene)

    ends = {labels: value for (name, labels), value in page.items() if name.endswith("end_offset")}
    assert len(ends) == 3
    assert figure(page, "kohort_log_end_offset", topic=OTHER, partition=OTHER) == 4


def test_a_name_full_of_quotes_stays_one_name(make: Callable[..., Scene]) -> None:
    scene = make()
    join_alone(scene, 'a "b"\n\\c')

    assert labels_of(page_of(scene), "kohort_group_members", "group") == ['a "b"\n\\c']


def test_a_label_is_only_for_groups_that_there_are() -> None:
    living = {GroupId("a"), GroupId("b")}
    figures = Figures(1, living)

    assert figures.label(GroupId("stranger")) == OTHER
    figures.of_group(GroupId("a"))
    assert figures.label(GroupId("b")) == OTHER
    living.remove(GroupId("a"))
    figures.forget_the_dead()
    assert figures.label(GroupId("b")) == "b"


# Requests


def find_error(response: object) -> int:
    return FINDERS[type(response)](response)


def test_the_first_error_of_an_answer_is_found_however_deep_it_is() -> None:
    refused = PartitionProduceResponse(error_code=ErrorCode.MESSAGE_TOO_LARGE)
    fine = TopicProduceResponse(partition_responses=(PartitionProduceResponse(),))
    guilty = TopicProduceResponse(partition_responses=(PartitionProduceResponse(), refused))

    assert find_error(ProduceResponse(responses=(fine, guilty))) == ErrorCode.MESSAGE_TOO_LARGE
    assert find_error(ProduceResponse(responses=(fine,))) == 0
    assert find_error(ProduceResponse()) == 0
    assert find_error(HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)) == 25
    assert find_error(MetadataResponse()) == 0
    assert find_error(ApiVersionsResponse()) == 0


def test_what_fits_a_bound_exactly_is_within_it() -> None:
    histogram = Histogram((1.0, 2.0))
    for amount in (0.5, 1.0, 1.5, 2.0, 9.0):
        histogram.add(amount)

    assert histogram.counts == [2, 2, 1]
    assert histogram.total == 14.0
