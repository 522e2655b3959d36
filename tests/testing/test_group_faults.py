"""Faults of groups, with real consumers and with raw requests."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import confluent_kafka
import pytest

from kohort.admin.cluster_connection import open_cluster
from kohort.admin.rebalance_history import list_rebalances
from kohort.node.control.errors import ControlError
from kohort.types import ErrorCode, Generation, GroupId, InstanceId, MemberId, Millis
from kohort.wire.api.k09_offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k14_sync_group import SyncGroupRequest
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from tests.node.raw_client import (
    Disconnected,
    Membership,
    RawClient,
    errors_in,
    join_alone,
    join_first,
    join_request,
)
from tests.testing.faulty_node import FaultyNode, commit_request, heartbeat_of, sync_of
from tests.wait import wait_until


def name(answer: Any) -> str:
    return ErrorCode(answer.error_code).name


def join_static(client: RawClient, group: str, instance: str) -> HeartbeatRequest:
    """Join and sync as the only member; return its heartbeat."""
    joined = client.ask(join_request(group, instance=instance), 9)
    assert name(joined) == "NONE"
    assert name(client.ask(sync_of(group, joined), 5)) == "NONE"
    return HeartbeatRequest(
        group_id=GroupId(group),
        generation_id=Generation(joined.generation_id),
        member_id=MemberId(joined.member_id),
        group_instance_id=InstanceId(instance),
    )


def join_two(one: RawClient, two: RawClient, group: str) -> tuple[Membership, Membership]:
    """The first is the leader."""
    leader = join_alone(one, group)
    fresh = two.ask(join_request(group), 9).member_id
    waiting = two.send(join_request(group, fresh), 9)
    joined = one.ask(join_request(group, leader.member_id), 9)
    assert two.receive(waiting).generation_id == joined.generation_id
    assert name(one.ask(sync_of(group, joined), 5)) == "NONE"
    generation = Generation(joined.generation_id)
    return Membership(GroupId(group), leader.member_id, generation), Membership(
        GroupId(group), MemberId(fresh), generation
    )


def triggers_of(node: FaultyNode, group: str) -> list[str | None]:
    """The triggers of the group's rebalances, from its recorded events."""
    with open_cluster(node.bootstrap_servers) as cluster:
        rebalances = list_rebalances(cluster, GroupId(group), Millis(0))
    return [each.trigger for each in rebalances]


@pytest.fixture
def consumer_of(faulty_node: FaultyNode) -> Iterator[Callable[..., Any]]:
    """Starts a consumer of topic t and polls it until it has partitions."""
    faulty_node.create_topic("t", 2)
    stack = ExitStack()

    def start(group: str, **options: str) -> confluent_kafka.Consumer:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": faulty_node.bootstrap_servers,
                "group.id": group,
                "heartbeat.interval.ms": 100,
                **{key.replace("_", "."): given for key, given in options.items()},
            }
        )
        stack.callback(consumer.close)
        consumer.subscribe(["t"])
        poll_until(consumer, lambda: bool(consumer.assignment()))
        return consumer

    with stack:
        yield start


def poll_until(consumer: confluent_kafka.Consumer, condition: Callable[[], bool]) -> None:
    def polled() -> bool:
        consumer.poll(0.05)
        return condition()

    wait_until(polled, 30)


# Members


def test_expired_session_removes_the_member(faulty_node: FaultyNode) -> None:
    with faulty_node.connect() as client:
        member = join_alone(client, "g")

        faulty_node.faults.expire_session("g", member.member_id)

        assert name(client.ask(heartbeat_of(member), 4)) == "UNKNOWN_MEMBER_ID"
    assert faulty_node.describe("g").group_state == "Empty"


def test_consumer_rejoins_after_its_session_expired(
    faulty_node: FaultyNode, consumer_of: Callable[..., Any]
) -> None:
    consumer = consumer_of("g", client_id="app")
    (before,) = [each.member_id for each in faulty_node.describe("g").members]

    faulty_node.faults.expire_session("g", "app")

    def is_back() -> bool:
        members = faulty_node.describe("g").members
        return bool(members) and members[0].member_id != before and bool(consumer.assignment())

    poll_until(consumer, is_back)


def test_session_of_a_member_that_waits_cannot_expire(faulty_node: FaultyNode) -> None:
    with faulty_node.connect() as one, faulty_node.connect() as two:
        leader, _ = join_two(one, two, "g")
        faulty_node.faults.rebalance("g")
        with faulty_node.faults.silence("JoinGroup", after=True) as waiting:
            one.send(join_request("g", leader.member_id), 9)
            wait_until(lambda: faulty_node.faults.list()[0]["matched"] == 1)

            with pytest.raises(ControlError, match="cannot expire now: its JoinGroup or SyncGroup"):
                faulty_node.faults.expire_session("g", leader.member_id)

    assert waiting.count == 0


def test_static_member_is_fenced_by_another_process(faulty_node: FaultyNode) -> None:
    with faulty_node.connect() as client:
        beat = join_static(client, "g", "i1")

        faulty_node.faults.fence("g", "i1")

        assert name(client.ask(beat, 4)) == "FENCED_INSTANCE_ID"
    described = faulty_node.describe("g")
    assert described.group_state == "Stable"
    assert [each.group_instance_id for each in described.members] == ["i1"]
    assert described.members[0].member_id != beat.member_id


def test_fenced_consumer_gets_a_fatal_error(
    faulty_node: FaultyNode, consumer_of: Callable[..., Any]
) -> None:
    consumer = consumer_of("g", group_instance_id="i1")
    codes: list[str] = []

    faulty_node.faults.fence("g", "i1")

    def is_fenced() -> bool:
        message = consumer.poll(0.05)
        codes.extend([message.error().name()] if message is not None and message.error() else [])
        return "_FATAL" in codes

    wait_until(is_fenced, 30)


def test_dynamic_member_cannot_be_fenced_and_is_removed(faulty_node: FaultyNode) -> None:
    with faulty_node.connect() as client:
        member = join_alone(client, "g")

        faulty_node.faults.fence("g", member.member_id)

        assert name(client.ask(heartbeat_of(member), 4)) == "UNKNOWN_MEMBER_ID"


def test_administrator_removes_a_static_and_a_dynamic_member(faulty_node: FaultyNode) -> None:
    with faulty_node.connect() as client:
        beat = join_static(client, "static", "i1")
        member = join_alone(client, "dynamic")

        faulty_node.faults.remove_member("static", "i1")
        faulty_node.faults.remove_member("dynamic", member.member_id)

        assert name(client.ask(beat, 4)) == "UNKNOWN_MEMBER_ID"
        assert name(client.ask(heartbeat_of(member), 4)) == "UNKNOWN_MEMBER_ID"
    assert triggers_of(faulty_node, "static")[-1] == "member-removed"
    assert triggers_of(faulty_node, "dynamic")[-1] == "member-left"


def test_unknown_member_is_refused_with_the_members(faulty_node: FaultyNode) -> None:
    with faulty_node.connect() as one, faulty_node.connect() as two:
        leader, follower = join_two(one, two, "g")
        join_alone(one, "other")

        with pytest.raises(ControlError, match="group g has no member x") as unknown:
            faulty_node.faults.remove_member("g", "x")
        with pytest.raises(ControlError, match="2 members with the client id client") as several:
            faulty_node.faults.remove_member("g", "client")
        with pytest.raises(ControlError, match=r"no group x\. Groups: g, other"):
            faulty_node.faults.expire_session("x", "client")

    for refusal in (unknown, several):
        assert leader.member_id in str(refusal.value)
        assert f"{follower.member_id} (client client)" in str(refusal.value)
    faulty_node.faults.remove_member("other", "client")
    assert faulty_node.describe("other").group_state == "Empty"


# Rebalances


def test_forced_rebalance_is_recorded_with_its_trigger(
    faulty_node: FaultyNode, consumer_of: Callable[..., Any]
) -> None:
    consumer = consumer_of("g")

    before = faulty_node.faults.rebalance("g")

    poll_until(consumer, lambda: triggers_of(faulty_node, "g")[-1:] == ["forced"])
    poll_until(consumer, lambda: faulty_node.describe("g").group_state == "Stable")
    assert before == 1
    assert len(consumer.assignment()) == 2


def test_group_without_members_cannot_rebalance(faulty_node: FaultyNode) -> None:
    faulty_node.create_topic("t")
    with faulty_node.connect() as client:
        client.ask(commit_request("g", 1), 9)

    with pytest.raises(ControlError, match="group g has no members"):
        faulty_node.faults.rebalance("g")


def test_lost_sync_answer_of_the_leader_leaves_a_stable_group(faulty_node: FaultyNode) -> None:
    with (
        faulty_node.connect() as client,
        faulty_node.faults.lose_sync_answer("g") as fault,
    ):
        joined = join_first(client, "g")
        client.send(sync_of("g", joined), 5)
        fault.wait()
        with pytest.raises(Disconnected):
            client.receive_frame()
        assert faulty_node.describe("g").group_state == "Stable"

        with faulty_node.connect() as again:
            assert again.ask(sync_of("g", joined), 5).assignment == b"all"

    assert fault.count == 1


def test_answer_of_a_follower_is_not_lost(faulty_node: FaultyNode) -> None:
    with faulty_node.connect() as one, faulty_node.connect() as two:
        _, follower = join_two(one, two, "g")
        with faulty_node.faults.lose_sync_answer("g") as fault:
            answer = two.ask(
                SyncGroupRequest(
                    group_id=GroupId("g"),
                    generation_id=follower.generation,
                    member_id=follower.member_id,
                ),
                3,
            )

    assert name(answer) == "NONE"
    assert fault.count == 0


def test_consumer_continues_after_a_lost_sync_answer(
    faulty_node: FaultyNode, consumer_of: Callable[..., Any]
) -> None:
    with faulty_node.faults.lose_sync_answer("g") as fault:
        consumer = consumer_of("g")

    assert fault.count == 1
    assert len(consumer.assignment()) == 2


# The coordinator


def errors_of(client: RawClient, group: str) -> dict[str, str]:
    """The error of each kind of request to the coordinator."""
    asked = OffsetFetchRequestGroup(group_id=GroupId(group), topics=None)
    fetched = client.ask(OffsetFetchRequest(groups=(asked,)), 9)
    committed = client.ask(commit_request(group, 1), 9)
    described = client.ask(DescribeGroupsRequest(groups=(GroupId(group),)), 5)
    found = client.ask(FindCoordinatorRequest(coordinator_keys=(group,)), 4)
    beat = HeartbeatRequest(
        group_id=GroupId(group), generation_id=Generation(1), member_id=MemberId("m")
    )
    sync = SyncGroupRequest(
        group_id=GroupId(group), generation_id=Generation(1), member_id=MemberId("m")
    )
    return {
        "join": name(client.ask(join_request(group), 9)),
        "sync": name(client.ask(sync, 5)),
        "heartbeat": name(client.ask(beat, 4)),
        "commit": errors_in(committed, ["topics", "partitions"])[0],
        "fetch": errors_in(fetched, ["groups"])[0],
        "describe": errors_in(described, ["groups"])[0],
        "find": errors_in(found, ["coordinators"])[0],
    }


def test_moved_coordinator_refuses_all_but_find_coordinator(faulty_node: FaultyNode) -> None:
    faulty_node.create_topic("t")

    with (
        faulty_node.connect() as client,
        faulty_node.faults.coordinator_moved("g") as fault,
    ):
        moved, other = errors_of(client, "g"), errors_of(client, "other")

    assert moved == {**dict.fromkeys(moved, "NOT_COORDINATOR"), "find": "NONE"}
    assert "NOT_COORDINATOR" not in other.values()
    assert fault.count == 6


def test_loading_coordinator_answers_as_kafka_does(faulty_node: FaultyNode) -> None:
    faulty_node.create_topic("t")

    with faulty_node.connect() as client, faulty_node.faults.coordinator_loading() as fault:
        loading = errors_of(client, "g")

    assert loading == {
        **dict.fromkeys(loading, "COORDINATOR_LOAD_IN_PROGRESS"),
        "heartbeat": "NONE",
        "sync": "REBALANCE_IN_PROGRESS",
        "find": "NONE",
    }
    assert fault.count == 6


def test_consumer_joins_when_the_coordinator_is_back(
    faulty_node: FaultyNode, consumer_of: Callable[..., Any]
) -> None:
    consumer = consumer_of("g")
    with faulty_node.faults.coordinator_moved("g") as fault:
        poll_until(consumer, lambda: fault.count >= 2)

    with faulty_node.connect() as client:
        assert errors_of(client, "g")["describe"] == "NONE"
    poll_until(consumer, lambda: faulty_node.describe("g").group_state == "Stable")
    assert len(consumer.assignment()) == 2
