"""KIP-848 groups, whose members and assignments are many records."""

from typing import Any

from kohort.admin.group_monitor import ClusterState
from kohort.types import Generation, GroupId, MemberId, Millis, Partition, Topic, Uuid
from kohort.wire import consumer_offsets as records
from tests.admin.group_monitor.cluster_records import NOW, at

GROUP = GroupId("kip-848")
ORDERS = Uuid(b"0123456789abcdef")


def fold(state: ClusterState, key: Any, found: Any, ms: int = NOW) -> None:
    data = None if found is None else records.encode_value(found, 0)
    state.fold_record(records.encode_key(key), data, Millis(ms))


def member(state: ClusterState, name: str, *, is_tombstone: bool = False) -> None:
    key = records.ConsumerGroupMemberMetadataKey(group_id=GROUP, member_id=MemberId(name))
    found = records.ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id=f"client-{name}",
        client_host="/10.0.0.1",
        subscribed_topic_names=(Topic("orders"),),
        subscribed_topic_regex=None,
        rebalance_timeout_ms=Millis(300_000),
        server_assignor="uniform",
        classic_member_metadata=None,
    )
    fold(state, key, None if is_tombstone else found)


def target(state: ClusterState, name: str, *numbers: int) -> None:
    key = records.ConsumerGroupTargetAssignmentMemberKey(group_id=GROUP, member_id=MemberId(name))
    partitions = tuple(Partition(each) for each in numbers)
    part = records.TargetTopicPartitions(topic_id=ORDERS, partitions=partitions)
    fold(state, key, records.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=(part,)))


def epoch(state: ClusterState, number: int, ms: int = NOW) -> None:
    key = records.ConsumerGroupTargetAssignmentMetadataKey(group_id=GROUP)
    value = records.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=number)
    fold(state, key, value, ms)


def current(state: ClusterState, name: str, *numbers: int) -> None:
    key = records.ConsumerGroupCurrentMemberAssignmentKey(group_id=GROUP, member_id=MemberId(name))
    part = records.CurrentTopicPartitions(
        topic_id=ORDERS,
        partitions=tuple(Partition(each) for each in numbers),
        assignment_epochs=(),
    )
    value = records.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=1,
        previous_member_epoch=0,
        state=0,
        assigned_partitions=(part,),
        partitions_pending_revocation=(),
    )
    fold(state, key, value)


def test_members_have_their_current_assignment() -> None:
    state = ClusterState()
    state.fold_topics({ORDERS: Topic("orders")})

    member(state, "a")
    current(state, "a", 0, 1)

    view = state.find_group(GROUP, NOW)
    assert view is not None
    assert (view.row.kind, view.row.protocol) == ("consumer", "uniform")
    assert view.members[0].partitions == (at(0), at(1))


def test_a_topic_is_shown_by_id_until_its_name_is_known() -> None:
    state = ClusterState()
    member(state, "a")
    current(state, "a", 0)
    before = state.find_group(GROUP, NOW)

    state.fold_topics({ORDERS: Topic("orders")})

    after = state.find_group(GROUP, NOW)
    assert before is not None
    assert after is not None
    assert before.members[0].partitions != (at(0),)
    assert after.members[0].partitions == (at(0),)


def test_a_new_target_assignment_is_a_rebalance() -> None:
    state = ClusterState()
    state.fold_topics({ORDERS: Topic("orders")})
    member(state, "a")
    target(state, "a", 0, 1)
    epoch(state, 2, NOW - 5000)

    member(state, "b")
    target(state, "a", 0)
    target(state, "b", 1)
    epoch(state, 3)

    view = state.find_group(GROUP, NOW)
    assert view is not None
    _, second = view.rebalances
    assert (second.generation_before, second.generation) == (2, Generation(3))
    assert second.newcomers == ("b",)
    owned = {(each.party.member_id, each.partition, each.to_ms) for each in view.ownership}
    assert owned == {("a", at(0), None), ("a", at(1), NOW), ("b", at(1), None)}


def test_a_tombstone_removes_a_member() -> None:
    state = ClusterState()
    member(state, "a")

    member(state, "a", is_tombstone=True)

    view = state.find_group(GROUP, NOW)
    assert view is not None
    assert view.members == ()
