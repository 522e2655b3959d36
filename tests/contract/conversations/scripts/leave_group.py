"""LeaveGroup: single members, many members, static and unknown members."""

from kohort.types import GroupId, InstanceId, MemberId
from kohort.wire.api.k13_leave_group import LeaveGroupRequest, MemberIdentity
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import UNKNOWN_MEMBER, Member, assemble, gather
from tests.contract.conversations.session import Session


def instance(name: str, member_id: str = "") -> MemberIdentity:
    return MemberIdentity(member_id=MemberId(member_id), group_instance_id=InstanceId(name))


@conversation(vary=LeaveGroupRequest)
def a_group_is_empty_after_its_last_member_left(session: Session) -> None:
    a = Member(session, "a")
    gather([a])

    a.leave()
    session.wait_for_group(a.group, state="Empty", members=0)
    a.leave()


@conversation(vary=LeaveGroupRequest)
def the_remaining_members_rebalance_after_a_leave(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a, b])

    b.leave()
    a.beat()
    a.join()


@conversation(vary=LeaveGroupRequest)
def another_member_becomes_leader_when_the_leader_leaves(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a, b])

    a.leave()
    b.join()


@conversation(vary=LeaveGroupRequest)
def the_rebalance_does_not_wait_for_a_member_that_left(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a])
    b.send_join()
    session.wait_for_group(a.group, state="PreparingRebalance", members=2)

    a.leave()
    b.hear_join()


@conversation(vary=LeaveGroupRequest)
def a_leave_before_the_assignment_restarts_the_rebalance(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    assemble([a, b])
    b.send_sync()

    a.leave()
    b.receive()
    b.join()


@conversation(vary=LeaveGroupRequest)
def a_pending_member_can_leave(session: Session) -> None:
    a = Member(session, "a")
    a.ask_join()

    a.leave()
    a.ask_join()


@conversation(vary=LeaveGroupRequest)
def a_group_without_a_name_cannot_be_left(session: Session) -> None:
    Member(session, "a").leave(group_id=GroupId(""))


@conversation(vary=LeaveGroupRequest)
def leaving_an_unknown_group_is_refused(session: Session) -> None:
    a = Member(session, "a")
    a.member_id = UNKNOWN_MEMBER

    a.leave()


@conversation(vary=LeaveGroupRequest)
def an_unknown_member_cannot_leave(session: Session) -> None:
    a, unknown = Member(session, "a"), Member(session, "unknown")
    gather([a])
    unknown.member_id = UNKNOWN_MEMBER

    unknown.leave()
    a.beat()


@conversation(vary=LeaveGroupRequest)
def a_member_without_a_member_id_cannot_leave(session: Session) -> None:
    a, unknown = Member(session, "a"), Member(session, "unknown")
    gather([a])

    unknown.leave()
    a.beat()


@conversation(vary=LeaveGroupRequest, since=3)
def each_leaving_member_has_its_own_error_code(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b", instance="i")
    c = Member(session, "c", instance="j")
    gather([a, b, c])

    a.leave(
        MemberIdentity(member_id=UNKNOWN_MEMBER),
        instance("i"),
        instance("unheard of"),
        instance("j", UNKNOWN_MEMBER),
        instance("i"),
    )
    c.beat()


@conversation(vary=LeaveGroupRequest, since=3)
def an_empty_list_of_leaving_members_is_allowed(session: Session) -> None:
    a = Member(session, "a")
    gather([a])

    a.leave(members=())
    a.beat()


@conversation(vary=LeaveGroupRequest, since=3)
def a_member_named_twice_leaves_once(session: Session) -> None:
    a = Member(session, "a")
    gather([a])

    a.leave(MemberIdentity(member_id=a.member_id))


@conversation(vary=LeaveGroupRequest, since=3)
def a_static_member_is_removed_by_its_instance_id(session: Session) -> None:
    a, admin = Member(session, "a", instance="i"), Member(session, "admin")
    gather([a])

    admin.leave(members=(instance("i"),))
    a.beat()


@conversation(vary=LeaveGroupRequest, since=3)
def a_static_member_can_leave_without_its_instance_id(session: Session) -> None:
    a = Member(session, "a", instance="i")
    gather([a])

    a.leave(members=(MemberIdentity(member_id=a.member_id),))
    a.ask_join(member_id=MemberId(""))


@conversation(vary=LeaveGroupRequest, since=3)
def an_instance_id_of_another_member_is_fenced(session: Session) -> None:
    a, b = Member(session, "a", instance="i"), Member(session, "b")
    gather([a, b])

    b.leave(members=(instance("i", b.member_id),))
    a.leave(members=(instance("unheard of", a.member_id),))


@conversation(vary=LeaveGroupRequest, since=5)
def a_leave_reason_does_not_change_the_response(session: Session) -> None:
    a = Member(session, "a")
    gather([a])

    a.leave(members=(MemberIdentity(member_id=a.member_id, reason="enough"),))


@conversation()
def a_pending_member_that_leaves_causes_no_rebalance(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a])
    b.ask_join()

    b.leave()
    with session.deviates(
        "Kafka 4 also rebalances when only pending members leave", "answer.error_code"
    ):
        a.beat()


@conversation()
def a_waiting_sync_is_answered_when_its_member_is_removed(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b", instance="i")
    admin = Member(session, "admin")
    assemble([a, b])
    b.send_sync()
    session.wait_for_processing()

    admin.leave(members=(instance("i"),))
    with session.deviates("Kafka never answers the parked SyncGroup of a removed member", "answer"):
        b.client.receive_if_any()


@conversation()
def the_rebalance_does_not_wait_for_a_pending_member_that_left(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a])
    b.ask_join()
    a.send_join()
    session.wait_for_group(a.group, state="PreparingRebalance")

    b.leave()
    a.hear_join()
