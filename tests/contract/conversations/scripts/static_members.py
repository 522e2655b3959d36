"""Static members (KIP-345): restarts with the same instance id, and fencing of the old one."""

from collections.abc import Callable
from typing import Any

from kohort.types import MemberId, Millis
from kohort.wire.api.k11_join_group import JoinGroupRequest
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import (
    UNKNOWN_MEMBER,
    Member,
    assemble,
    gather,
    offset_of,
    protocols,
    rejoin,
    subscription,
)
from tests.contract.conversations.session import DEADLINE_S, Session
from tests.wait import wait_until


def again(session: Session, member: Member, name: str, **fields: Any) -> Member:
    """The same instance after a restart, without a member id."""
    return Member(session, name, instance=str(member.instance), **fields)


@conversation(vary=JoinGroupRequest, since=5)
def a_static_leader_that_rejoins_a_stable_group_causes_no_rebalance(session: Session) -> None:
    a, b = Member(session, "a", instance="i"), Member(session, "b")
    gather([a, b])

    new = again(session, a, "a")
    new.join()
    new.sync()
    b.beat()
    new.beat()


@conversation(vary=JoinGroupRequest, since=5)
def a_static_follower_that_rejoins_a_stable_group_causes_no_rebalance(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b", instance="i")
    gather([a, b])

    new = again(session, b, "b")
    new.join()
    new.sync()
    a.beat()
    new.beat()


@conversation(vary=JoinGroupRequest, since=5)
def the_old_member_id_of_a_restarted_static_member_is_fenced(session: Session) -> None:
    t = session.topic()
    topic_id = session.find_topic_id(t)
    a = Member(session, "a", instance="i")
    gather([a])
    again(session, a, "a").join()

    a.beat()
    a.sync()
    a.commit(offset_of(t, topic_id=topic_id))
    a.ask_join()
    a.leave()
    a.beat(group_instance_id=None)
    a.sync(group_instance_id=None)
    a.commit(offset_of(t, topic_id=topic_id), group_instance_id=None)
    a.ask_join(group_instance_id=None)


@conversation(vary=JoinGroupRequest, since=5)
def a_static_member_that_rejoins_with_its_member_id_is_an_ordinary_rejoin(session: Session) -> None:
    a, b = Member(session, "a", instance="i"), Member(session, "b", instance="j")
    gather([a, b])

    b.join()
    b.beat()


@conversation(vary=JoinGroupRequest, since=5)
def an_instance_id_with_another_member_id_is_fenced(session: Session) -> None:
    a, b = Member(session, "a", instance="i"), Member(session, "b", instance="j")
    gather([a, b])

    b.ask_join(group_instance_id="i")
    b.ask_join(member_id=UNKNOWN_MEMBER)
    b.ask_join(group_instance_id="unheard of")


@conversation(vary=JoinGroupRequest, since=5)
def a_changed_subscription_of_a_restarted_static_member_waits_for_the_next_rebalance(
    session: Session,
) -> None:
    a, b = Member(session, "a"), Member(session, "b", instance="i")
    gather([a, b])

    with_header = protocols(range=subscription(note="changed"))
    again(session, b, "b", protocols=with_header).join()
    a.beat()


@conversation(vary=JoinGroupRequest, since=5)
def a_restarted_static_member_with_other_protocols_can_start_a_rebalance(session: Session) -> None:
    both = protocols(range=subscription(), sticky=subscription())
    other = protocols(sticky=subscription(), range=subscription())
    a, b = Member(session, "a", protocols=both), Member(session, "b", instance="i", protocols=both)
    c = Member(session, "c", protocols=other)
    gather([a, b, c])

    new = again(session, b, "b", protocols=other)
    new.send_join()
    session.wait_for_group(a.group, state="PreparingRebalance")
    c.send_join()
    a.join()
    new.hear_join()
    c.hear_join()


@conversation(vary=JoinGroupRequest, since=5)
def a_restarted_static_member_with_an_inconsistent_protocol_is_refused(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b", instance="i")
    gather([a, b])

    again(session, b, "b", protocols=protocols(sticky=subscription())).ask_join()
    b.beat()


@conversation(vary=JoinGroupRequest, since=5)
def a_static_member_restarted_before_the_assignment_restarts_the_rebalance(
    session: Session,
) -> None:
    a, b = Member(session, "a"), Member(session, "b", instance="i")
    assemble([a, b])

    new = again(session, b, "b")
    new.send_join()
    session.wait_for_group(a.group, state="PreparingRebalance")
    a.join()
    new.hear_join()


@conversation(vary=JoinGroupRequest, since=5)
def a_waiting_join_is_fenced_when_its_instance_restarts(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b", instance="i")
    gather([a])
    b.send_join()
    session.wait_for_group(a.group, state="PreparingRebalance", members=2)

    new = again(session, b, "b")
    new.send_join()
    b.hear_join()
    rejoin(a, [])
    new.hear_join()


@conversation(vary=JoinGroupRequest, since=5)
def a_waiting_sync_is_fenced_when_its_instance_restarts(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b", instance="i")
    assemble([a, b])
    b.send_sync()
    session.wait_for_group(a.group, state="CompletingRebalance")

    new = again(session, b, "b")
    new.send_join()
    b.receive()
    a.join()
    new.hear_join()


@conversation()
def a_static_member_that_misses_a_rebalance_is_kept(session: Session) -> None:
    short: dict[str, Any] = {"rebalance_timeout_ms": Millis(800)}
    a, b = Member(session, "a", **short), Member(session, "b", instance="i", **short)
    gather([a, b])

    a.join()
    b.beat()
    b.beat(generation_id=a.generation)


@conversation()
def a_static_member_is_removed_after_its_session_timeout(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b", instance="i", session_timeout_ms=Millis(600))
    gather([a, b])

    session.wait_for_group(a.group, state="PreparingRebalance", members=1)
    b.beat()
    b.ask_join()


@conversation()
def a_restarted_static_member_uses_its_own_session_timeout(session: Session) -> None:
    a = Member(session, "a", instance="i", session_timeout_ms=Millis(600))
    gather([a])
    new = again(session, a, "a", session_timeout_ms=Millis(60_000))
    new.join()

    wait_until(start_clock(session), DEADLINE_S, "time to pass")
    with session.deviates(
        "Kafka uses the old member's timeout for the first session", "answer.error_code"
    ):
        new.beat()


@conversation()
def a_restarted_static_member_can_sync_in_the_current_generation(session: Session) -> None:
    short: dict[str, Any] = {"rebalance_timeout_ms": Millis(600)}
    a, b = Member(session, "a", **short), Member(session, "b", instance="i", **short)
    assemble([a, b])
    a.sync({a.member_id: b"one", b.member_id: b"two"})
    new = again(session, b, "b", **short)
    new.join()
    new.sync()

    is_over = start_clock(session)
    with session.deviates(
        "Kafka still expects SyncGroup from the old member id", "answer.error_code"
    ):
        a.client.ask_until(a.beating(), lambda answer: answer.error_code or is_over())


def start_clock(session: Session) -> Callable[[], bool]:
    """Returns a function that tells whether a session of more than one second is over."""
    clock = Member(session, "clock", group=session.group("clock"), session_timeout_ms=Millis(1200))
    gather([clock])
    request = DescribeGroupsRequest(groups=(clock.group,))
    return lambda: bool(session.query(request).groups[0].group_state == "Empty")


@conversation()
def a_static_member_can_use_a_pending_member_id(session: Session) -> None:
    a = Member(session, "a")
    a.ask_join()

    a.instance = None
    with session.deviates("Member ids are only issued in advance to dynamic members", "answer*"):
        a.ask_join(group_instance_id="i")


@conversation()
def an_empty_instance_id_is_an_instance_id(session: Session) -> None:
    a = Member(session, "a", instance="")

    a.ask_join()
    a.beat()
    a.ask_join(member_id=MemberId(""))
