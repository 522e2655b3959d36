"""Leaving: one by one, many at once, by instance, and by those who never were there."""

from kohort.types import GroupId, InstanceId, MemberId
from kohort.wire.api.k13_leave_group import LeaveGroupRequest, MemberIdentity
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import NOBODY, Member, assemble, gather
from tests.contract.conversations.talking import Talk


def instance(name: str, member_id: str = "") -> MemberIdentity:
    return MemberIdentity(member_id=MemberId(member_id), group_instance_id=InstanceId(name))


@conversation(vary=LeaveGroupRequest)
def the_last_member_leaves_an_empty_group(talk: Talk) -> None:
    a = Member(talk, "a")
    gather([a])

    a.leave()
    talk.wait_for_group(a.group, state="Empty", members=0)
    a.leave()


@conversation(vary=LeaveGroupRequest)
def those_who_stay_learn_that_one_has_left(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a, b])

    b.leave()
    a.beat()
    a.join()


@conversation(vary=LeaveGroupRequest)
def when_the_leader_leaves_another_one_leads(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a, b])

    a.leave()
    b.join()


@conversation(vary=LeaveGroupRequest)
def who_leaves_during_a_rebalance_is_not_waited_for(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a])
    b.send_join()
    talk.wait_for_group(a.group, state="PreparingRebalance", members=2)

    a.leave()
    b.hear_join()


@conversation(vary=LeaveGroupRequest)
def who_leaves_before_the_assignment_starts_it_over(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    assemble([a, b])
    b.send_sync()

    a.leave()
    b.hear()
    b.join()


@conversation(vary=LeaveGroupRequest)
def a_promised_member_may_leave(talk: Talk) -> None:
    a = Member(talk, "a")
    a.ask_join()

    a.leave()
    a.ask_join()


@conversation(vary=LeaveGroupRequest)
def a_group_without_a_name_cannot_be_left(talk: Talk) -> None:
    Member(talk, "a").leave(group_id=GroupId(""))


@conversation(vary=LeaveGroupRequest)
def nobody_can_leave_a_group_that_does_not_exist(talk: Talk) -> None:
    a = Member(talk, "a")
    a.member_id = NOBODY

    a.leave()


@conversation(vary=LeaveGroupRequest)
def a_stranger_cannot_leave(talk: Talk) -> None:
    a, stranger = Member(talk, "a"), Member(talk, "stranger")
    gather([a])
    stranger.member_id = NOBODY

    stranger.leave()
    a.beat()


@conversation(vary=LeaveGroupRequest)
def a_member_without_an_id_cannot_leave(talk: Talk) -> None:
    a, stranger = Member(talk, "a"), Member(talk, "stranger")
    gather([a])

    stranger.leave()
    a.beat()


@conversation(vary=LeaveGroupRequest, since=3)
def many_leave_at_once_and_each_is_answered(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", instance="i")
    c = Member(talk, "c", instance="j")
    gather([a, b, c])

    a.leave(
        MemberIdentity(member_id=NOBODY),
        instance("i"),
        instance("unheard of"),
        instance("j", NOBODY),
        instance("i"),
    )
    c.beat()


@conversation(vary=LeaveGroupRequest, since=3)
def nobody_leaves_and_that_is_fine(talk: Talk) -> None:
    a = Member(talk, "a")
    gather([a])

    a.leave(members=())
    a.beat()


@conversation(vary=LeaveGroupRequest, since=3)
def a_member_may_say_twice_that_it_leaves(talk: Talk) -> None:
    a = Member(talk, "a")
    gather([a])

    a.leave(MemberIdentity(member_id=a.member_id))


@conversation(vary=LeaveGroupRequest, since=3)
def a_static_member_is_sent_away_by_its_instance(talk: Talk) -> None:
    a, admin = Member(talk, "a", instance="i"), Member(talk, "admin")
    gather([a])

    admin.leave(members=(instance("i"),))
    a.beat()


@conversation(vary=LeaveGroupRequest, since=3)
def a_static_member_may_leave_without_naming_its_instance(talk: Talk) -> None:
    a = Member(talk, "a", instance="i")
    gather([a])

    a.leave(members=(MemberIdentity(member_id=a.member_id),))
    a.ask_join(member_id=MemberId(""))


@conversation(vary=LeaveGroupRequest, since=3)
def an_instance_of_another_member_is_fenced(talk: Talk) -> None:
    a, b = Member(talk, "a", instance="i"), Member(talk, "b")
    gather([a, b])

    b.leave(members=(instance("i", b.member_id),))
    a.leave(members=(instance("unheard of", a.member_id),))


@conversation(vary=LeaveGroupRequest, since=5)
def a_reason_to_leave_changes_nothing_in_the_answer(talk: Talk) -> None:
    a = Member(talk, "a")
    gather([a])

    a.leave(members=(MemberIdentity(member_id=a.member_id, reason="enough"),))


@conversation()
def a_promised_member_that_leaves_a_stable_group_disturbs_nobody(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a])
    b.ask_join()

    b.leave()
    with talk.deviates("Kafka 4 also rebalances when only an id", "answer.error_code"):
        a.beat()


@conversation()
def a_sync_that_waits_is_answered_when_its_member_is_sent_away(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", instance="i")
    admin = Member(talk, "admin")
    assemble([a, b])
    b.send_sync()
    talk.let_pass()

    admin.leave(members=(instance("i"),))
    with talk.deviates("Kafka lets the sync of a removed member time out", "answer"):
        b.speaker.hear_if_any()


@conversation()
def a_promised_member_that_leaves_is_not_waited_for(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a])
    b.ask_join()
    a.send_join()
    talk.wait_for_group(a.group, state="PreparingRebalance")

    b.leave()
    a.hear_join()
