"""Snapshots of the coordinator's groups."""

from kohort.conditions.group_snapshot import GroupSnapshot
from kohort.coordinator.commands import Protocol
from kohort.coordinator.groups.classic.classic_member import ClassicMember
from kohort.coordinator.groups.classic.group import ClassicGroup
from kohort.coordinator.groups.classic.states import COMPLETING, DEAD, STABLE, GroupState
from kohort.coordinator.records import OffsetCommitted
from kohort.node.control.group_view import describe_group, find_commits, find_progress
from kohort.types import Generation, GroupId, MemberId, Millis, Offset, Partition, Topic
from kohort.wire.consumer_protocol import Subscription, TopicPartitions, encode_subscription
from tests.node.broker_harness import BrokerHarness, new_batch
from tests.node.group_setup import share

BILLING = GroupId("billing")
ORDERS = Topic("orders")


def member(
    name: str, assignment: bytes, protocol: str = "range", owned: tuple[int, ...] = ()
) -> ClassicMember:
    partitions = TopicPartitions(topic=ORDERS, partitions=tuple(map(Partition, owned)))
    subscription = Subscription(topics=(ORDERS,), owned_partitions=(partitions,))
    return ClassicMember(
        member_id=MemberId(name),
        instance_id=None,
        client_id=name,
        client_host="/127.0.0.1",
        rebalance_timeout_ms=Millis(1),
        session_timeout_ms=Millis(1),
        protocols=(Protocol(name=protocol, metadata=encode_subscription(subscription)),),
        assignment=assignment,
    )


def group(
    *members: ClassicMember, state: GroupState = STABLE, protocol: str = "range"
) -> ClassicGroup:
    made = ClassicGroup(BILLING, state=state, state_since_ms=Millis(1_000))
    made.generation, made.protocol_type, made.protocol = Generation(2), "consumer", protocol
    for each in members:
        made.add(each)
    made.recompute_subscribed_topics()
    return made


def view(found: ClassicGroup | None) -> GroupSnapshot:
    return describe_group(BILLING, found, Millis(5_000))


def test_missing_and_dead_groups_are_dead() -> None:
    assert view(None).state == "Dead"
    assert view(group(state=DEAD)).state == "Dead"


def test_stable_group_has_its_assignment_and_the_age_of_its_state() -> None:
    found = view(group(member("a", share("orders", 0, 1)), member("b", share("orders", 2))))

    assert [len(each.assignment) for each in found.members] == [2, 1]
    assert (found.generation, found.protocol, found.state_age_ms) == (2, "range", 4_000)
    assert found.is_settled


def test_group_is_not_settled_before_every_member_has_synced() -> None:
    classic = group(member("a", share("orders", 0)), member("b", share("orders", 1)))
    classic.pending_sync_members = {MemberId("b"): None}

    found = view(classic)

    assert found.unsynced == ("b",)
    assert not found.is_settled


def test_group_is_not_settled_while_a_member_id_is_unused() -> None:
    classic = group(a := member("a", share("orders", 0)))
    classic.pending_join_members = {MemberId("b"): a.identity}

    assert view(classic).joining == 1
    assert not view(classic).is_settled


def test_cooperative_group_is_not_settled_between_its_two_rebalances() -> None:
    loser = member("a", share("orders", 0), "cooperative-sticky", owned=(0, 1))
    newcomer = member("b", b"", "cooperative-sticky")

    found = view(group(loser, newcomer, protocol="cooperative-sticky"))

    assert found.revoking == ("a",)
    assert not found.is_settled


def test_nothing_is_assigned_while_the_group_rebalances() -> None:
    assert view(group(member("a", share("orders", 0)), state=COMPLETING)).assigned == 0


def test_malformed_assignment_is_empty() -> None:
    assert view(group(member("a", b"\0\1garbage"))).assigned == 0


def test_progress_is_about_all_partitions_of_subscribed_topics(harness: BrokerHarness) -> None:
    harness.create("orders", partitions=2)
    harness.produce(new_batch("one"), "orders")
    classic = group(member("a", share("orders", 0)))
    classic.offsets.commit(OffsetCommitted(BILLING, ORDERS, Partition(0), Offset(1), Millis(0)))

    found = find_progress(harness.broker.topics, classic, ())

    assert [(each.partition.partition, each.end, each.committed) for each in found] == [
        (0, 1, 1),
        (1, 0, None),
    ]


def test_progress_of_given_topics_needs_no_group(harness: BrokerHarness) -> None:
    harness.create("refunds", partitions=1)

    found = find_progress(harness.broker.topics, None, [Topic("refunds"), Topic("missing")])

    assert [each.partition.topic for each in found] == ["refunds"]


def test_commit_of_the_same_offset_is_another_commit() -> None:
    classic = group()
    again = [OffsetCommitted(BILLING, ORDERS, Partition(0), Offset(1), Millis(0)) for _ in range(2)]
    classic.offsets.commit(again[0])
    (before,) = find_commits(classic).values()
    classic.offsets.commit(again[1])
    (after,) = find_commits(classic).values()

    assert before == after
    assert before is not after
