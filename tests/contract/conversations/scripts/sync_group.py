"""SyncGroup: assignments from the leader, and every error."""

from dataclasses import replace

from kohort.types import Generation, GroupId, Millis
from kohort.wire.api.k14_sync_group import SyncGroupRequest
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import UNKNOWN_MEMBER, Member, assemble, gather
from tests.contract.conversations.session import Session


@conversation(vary=SyncGroupRequest)
def a_single_leader_gets_its_own_assignment(session: Session) -> None:
    gather([Member(session, "a")])


@conversation(vary=SyncGroupRequest)
def every_member_gets_the_assignment_from_the_leader(session: Session) -> None:
    gather([Member(session, "a"), Member(session, "b"), Member(session, "c")])


@conversation(vary=SyncGroupRequest)
def a_follower_waits_for_the_leader(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    assemble([a, b])

    b.send_sync()
    a.sync({a.member_id: b"one", b.member_id: b"two"})
    b.receive()


@conversation(vary=SyncGroupRequest)
def a_member_without_an_assignment_gets_an_empty_one(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    assemble([a, b])

    a.sync({a.member_id: b"all"})
    b.sync()


@conversation(vary=SyncGroupRequest)
def an_assignment_for_an_unknown_member_is_dropped(session: Session) -> None:
    a = Member(session, "a")
    a.join()

    a.sync({a.member_id: b"mine", UNKNOWN_MEMBER: b"unknown"})


@conversation(vary=SyncGroupRequest)
def a_member_named_twice_gets_the_last_assignment(session: Session) -> None:
    a = Member(session, "a")
    a.join()
    first, second = (a.syncing({a.member_id: share}).assignments for share in (b"1st", b"2nd"))

    a.client.ask(replace(a.syncing(), assignments=(*first, *second)))


@conversation(vary=SyncGroupRequest)
def assignments_from_a_follower_are_ignored(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    assemble([a, b])

    b.send_sync({a.member_id: b"b's idea", b.member_id: b"b's idea"})
    a.sync({a.member_id: b"one", b.member_id: b"two"})
    b.receive()


@conversation(vary=SyncGroupRequest)
def syncing_again_returns_the_same_assignment(session: Session) -> None:
    a = Member(session, "a")
    gather([a])

    a.sync()
    a.sync({a.member_id: b"another"})


# Refusals


@conversation(vary=SyncGroupRequest)
def a_group_without_a_name_cannot_be_synced(session: Session) -> None:
    Member(session, "a").sync(group_id=GroupId(""))


@conversation(vary=SyncGroupRequest)
def members_of_an_unknown_group_are_unknown(session: Session) -> None:
    Member(session, "a").sync(member_id=UNKNOWN_MEMBER)


@conversation(vary=SyncGroupRequest)
def the_member_id_is_checked_before_the_generation(session: Session) -> None:
    a, unknown = Member(session, "a"), Member(session, "unknown")
    gather([a])

    unknown.sync(member_id=UNKNOWN_MEMBER, generation_id=Generation(1))
    unknown.sync()


@conversation(vary=SyncGroupRequest)
def a_member_that_has_left_is_unknown(session: Session) -> None:
    a = Member(session, "a")
    gather([a])
    a.leave()

    a.sync()


@conversation(vary=SyncGroupRequest)
def another_generation_is_refused(session: Session) -> None:
    a = Member(session, "a")
    a.join()

    a.sync(generation_id=Generation(0))
    a.sync(generation_id=Generation(2))
    a.sync(generation_id=Generation(-1))


@conversation(vary=SyncGroupRequest, since=5)
def another_protocol_is_refused(session: Session) -> None:
    a = Member(session, "a")
    a.join()

    a.sync(protocol_type="connect")
    a.sync(protocol_name="sticky")
    a.sync(protocol_type="connect", generation_id=Generation(9))


@conversation(vary=SyncGroupRequest, since=5)
def the_protocol_is_required_since_version_5(session: Session) -> None:
    a = Member(session, "a")
    a.join()

    a.sync(protocol_type=None)
    a.sync(protocol_name=None)
    a.sync(protocol_name=None, group_id=GroupId(""))


@conversation(vary=SyncGroupRequest)
def a_sync_during_a_rebalance_is_refused(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a])
    b.send_join()
    session.wait_for_group(a.group, state="PreparingRebalance", members=2)

    a.sync({a.member_id: b"too late"})


@conversation(vary=SyncGroupRequest)
def a_waiting_sync_is_refused_when_the_group_rebalances(session: Session) -> None:
    a, b, c = Member(session, "a"), Member(session, "b"), Member(session, "c")
    assemble([a, b])
    b.send_sync()

    c.send_join()
    b.receive()


@conversation(vary=SyncGroupRequest, since=3)
def a_static_member_syncs_with_its_instance_id(session: Session) -> None:
    a = Member(session, "a", instance="i")
    gather([a])

    a.sync(group_instance_id="other")
    a.sync(member_id=UNKNOWN_MEMBER)


# Time


@conversation()
def a_follower_that_does_not_sync_in_time_is_removed(session: Session) -> None:
    a = Member(session, "a", rebalance_timeout_ms=Millis(800))
    b = Member(session, "b", rebalance_timeout_ms=Millis(800))
    assemble([a, b])
    a.sync({a.member_id: b"one", b.member_id: b"two"})

    session.wait_for_group(a.group, state="PreparingRebalance", members=1)
    a.join()
    b.sync()


@conversation()
def a_leader_that_does_not_sync_in_time_is_removed(session: Session) -> None:
    a = Member(session, "a", rebalance_timeout_ms=Millis(800))
    b = Member(session, "b", rebalance_timeout_ms=Millis(800))
    assemble([a, b])

    b.sync()
    b.join()
    a.beat()


# Repeating oneself


@conversation()
def a_sync_repeated_on_another_connection_is_answered_there(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    assemble([a, b])
    b.send_sync()
    session.wait_for_processing()

    again = session.client("b again")
    again.send(b.syncing())
    session.wait_for_processing()
    a.sync({a.member_id: b"one", b.member_id: b"two"})
    again.receive()
    with session.deviates(
        "if a member repeats SyncGroup, Kafka never answers the first request", "answer"
    ):
        b.client.receive_if_any()
