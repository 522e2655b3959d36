"""Groups of KIP-848, whose members and assignments are many records."""

from typing import Any

from kohort.admin.picture import Picture
from kohort.types import Generation, GroupId, MemberId, Millis, Partition, Topic, Uuid
from kohort.wire import consumer_offsets as records
from tests.admin.picture.folding import NOW, at

GROUP = GroupId("modern")
ORDERS = Uuid(b"0123456789abcdef")


def fold(picture: Picture, key: Any, told: Any, ms: int = NOW) -> None:
    data = None if told is None else records.encode_value(told, 0)
    picture.fold_record(records.encode_key(key), data, Millis(ms))


def member(picture: Picture, name: str, *, is_gone: bool = False) -> None:
    key = records.ConsumerGroupMemberMetadataKey(group_id=GROUP, member_id=MemberId(name))
    told = records.ConsumerGroupMemberMetadataValue(
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
    fold(picture, key, None if is_gone else told)


def target(picture: Picture, name: str, *numbers: int) -> None:
    key = records.ConsumerGroupTargetAssignmentMemberKey(group_id=GROUP, member_id=MemberId(name))
    partitions = tuple(Partition(each) for each in numbers)
    part = records.TargetTopicPartitions(topic_id=ORDERS, partitions=partitions)
    fold(picture, key, records.ConsumerGroupTargetAssignmentMemberValue(topic_partitions=(part,)))


def epoch(picture: Picture, number: int, ms: int = NOW) -> None:
    key = records.ConsumerGroupTargetAssignmentMetadataKey(group_id=GROUP)
    value = records.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=number)
    fold(picture, key, value, ms)


def current(picture: Picture, name: str, *numbers: int) -> None:
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
    fold(picture, key, value)


def test_members_hold_what_they_have_taken_over() -> None:
    picture = Picture()
    picture.fold_topics({ORDERS: Topic("orders")})

    member(picture, "a")
    current(picture, "a", 0, 1)

    view = picture.find_group(GROUP, NOW)
    assert view is not None
    assert (view.row.kind, view.row.protocol) == ("consumer", "uniform")
    assert view.members[0].holds == (at(0), at(1))


def test_a_topic_goes_by_its_id_until_its_name_is_known() -> None:
    picture = Picture()
    member(picture, "a")
    current(picture, "a", 0)
    before = picture.find_group(GROUP, NOW)

    picture.fold_topics({ORDERS: Topic("orders")})

    after = picture.find_group(GROUP, NOW)
    assert before is not None
    assert after is not None
    assert before.members[0].holds != (at(0),)
    assert after.members[0].holds == (at(0),)


def test_a_new_target_is_a_rebalance() -> None:
    picture = Picture()
    picture.fold_topics({ORDERS: Topic("orders")})
    member(picture, "a")
    target(picture, "a", 0, 1)
    epoch(picture, 2, NOW - 5000)

    member(picture, "b")
    target(picture, "a", 0)
    target(picture, "b", 1)
    epoch(picture, 3)

    view = picture.find_group(GROUP, NOW)
    assert view is not None
    _, second = view.rebalances
    assert (second.generation_before, second.generation) == (2, Generation(3))
    assert second.newcomers == ("b",)
    held = {(each.party.member_id, each.partition, each.to_ms) for each in view.stretches}
    assert held == {("a", at(0), None), ("a", at(1), NOW), ("b", at(1), None)}


def test_a_member_that_left_is_no_longer_there() -> None:
    picture = Picture()
    member(picture, "a")

    member(picture, "a", is_gone=True)

    view = picture.find_group(GROUP, NOW)
    assert view is not None
    assert view.members == ()
