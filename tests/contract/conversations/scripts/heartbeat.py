"""Heartbeat and session timeouts."""

from kohort.types import Generation, GroupId, Millis
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import UNKNOWN_MEMBER, Member, assemble, gather
from tests.contract.conversations.session import Session


@conversation(vary=HeartbeatRequest)
def a_heartbeat_in_a_stable_group_succeeds(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a, b])

    a.beat()
    b.beat()


@conversation(vary=HeartbeatRequest)
def a_heartbeat_in_a_completing_group_succeeds(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    assemble([a, b])

    a.beat()
    b.beat()


@conversation(vary=HeartbeatRequest)
def a_heartbeat_reports_a_rebalance(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a])
    b.send_join()
    session.wait_for_group(a.group, state="PreparingRebalance", members=2)

    a.beat()
    a.join()
    b.hear_join()
    a.beat()


@conversation(vary=HeartbeatRequest)
def the_unnamed_group_has_no_heartbeats(session: Session) -> None:
    Member(session, "a").beat(group_id=GroupId(""))


@conversation(vary=HeartbeatRequest)
def members_of_an_unknown_group_are_unknown(session: Session) -> None:
    Member(session, "a").beat(member_id=UNKNOWN_MEMBER)
    Member(session, "b").beat()


@conversation(vary=HeartbeatRequest)
def the_member_id_is_checked_before_the_generation(session: Session) -> None:
    a = Member(session, "a")
    gather([a])

    a.beat(member_id=UNKNOWN_MEMBER)
    a.beat(member_id=UNKNOWN_MEMBER, generation_id=Generation(9))


@conversation(vary=HeartbeatRequest)
def another_generation_is_refused(session: Session) -> None:
    a = Member(session, "a")
    gather([a])

    a.beat(generation_id=Generation(0))
    a.beat(generation_id=Generation(2))


@conversation(vary=HeartbeatRequest)
def a_member_that_has_left_is_unknown(session: Session) -> None:
    a = Member(session, "a")
    gather([a])
    a.leave()

    a.beat()


@conversation(vary=HeartbeatRequest, since=3)
def a_static_member_is_known_by_its_instance(session: Session) -> None:
    a, b = Member(session, "a", instance="i"), Member(session, "b", instance="j")
    gather([a, b])

    a.beat()
    a.beat(group_instance_id=None)
    a.beat(group_instance_id="unheard of")
    a.beat(group_instance_id="j")
    a.beat(member_id=UNKNOWN_MEMBER)
    a.beat(group_instance_id="j", generation_id=Generation(9))


@conversation()
def a_member_is_removed_after_its_session_timeout(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b", session_timeout_ms=Millis(600))
    gather([a, b])

    session.wait_for_group(a.group, state="PreparingRebalance", members=1)
    b.beat()
    a.beat()
    a.join()


@conversation()
def a_group_becomes_empty_after_the_session_timeout_of_its_only_member(session: Session) -> None:
    a = Member(session, "a", session_timeout_ms=Millis(600))
    gather([a])

    session.wait_for_group(a.group, state="Empty", members=0)
    a.beat()
    a.ask_join()


@conversation()
def a_member_that_waits_for_its_sync_response_keeps_its_session(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b", session_timeout_ms=Millis(600))
    assemble([a, b])
    b.send_sync()

    probe = Member(session, "probe", group=session.group("another"), session_timeout_ms=Millis(900))
    gather([probe])
    session.wait_for_group(probe.group, state="Empty")
    a.sync({a.member_id: b"one", b.member_id: b"two"})
    b.receive()
    b.beat()
