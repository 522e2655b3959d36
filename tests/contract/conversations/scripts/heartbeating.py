"""Heartbeats: what keeps a member in, and what a member learns from them."""

from kohort.types import Generation, GroupId, Millis
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import NOBODY, Member, assemble, gather
from tests.contract.conversations.talking import Talk


@conversation(vary=HeartbeatRequest)
def a_member_of_a_stable_group_is_heard(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a, b])

    a.beat()
    b.beat()


@conversation(vary=HeartbeatRequest)
def a_member_that_waits_for_its_assignment_is_heard(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    assemble([a, b])

    a.beat()
    b.beat()


@conversation(vary=HeartbeatRequest)
def a_member_learns_of_a_rebalance(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a])
    b.send_join()
    talk.wait_for_group(a.group, state="PreparingRebalance", members=2)

    a.beat()
    a.join()
    b.hear_join()
    a.beat()


@conversation(vary=HeartbeatRequest)
def a_group_without_a_name_has_no_pulse(talk: Talk) -> None:
    Member(talk, "a").beat(group_id=GroupId(""))


@conversation(vary=HeartbeatRequest)
def nobody_is_known_in_a_group_that_does_not_exist(talk: Talk) -> None:
    Member(talk, "a").beat(member_id=NOBODY)
    Member(talk, "b").beat()


@conversation(vary=HeartbeatRequest)
def a_stranger_is_unknown_before_its_generation_is_looked_at(talk: Talk) -> None:
    a = Member(talk, "a")
    gather([a])

    a.beat(member_id=NOBODY)
    a.beat(member_id=NOBODY, generation_id=Generation(9))


@conversation(vary=HeartbeatRequest)
def another_generation_is_refused(talk: Talk) -> None:
    a = Member(talk, "a")
    gather([a])

    a.beat(generation_id=Generation(0))
    a.beat(generation_id=Generation(2))


@conversation(vary=HeartbeatRequest)
def a_member_that_has_left_is_unknown(talk: Talk) -> None:
    a = Member(talk, "a")
    gather([a])
    a.leave()

    a.beat()


@conversation(vary=HeartbeatRequest, since=3)
def a_static_member_is_known_by_its_instance(talk: Talk) -> None:
    a, b = Member(talk, "a", instance="i"), Member(talk, "b", instance="j")
    gather([a, b])

    a.beat()
    a.beat(group_instance_id=None)
    a.beat(group_instance_id="unheard of")
    a.beat(group_instance_id="j")
    a.beat(member_id=NOBODY)
    a.beat(group_instance_id="j", generation_id=Generation(9))


@conversation()
def a_member_that_is_silent_for_its_session_is_removed(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", session_timeout_ms=Millis(600))
    gather([a, b])

    talk.wait_for_group(a.group, state="PreparingRebalance", members=1)
    b.beat()
    a.beat()
    a.join()


@conversation()
def a_group_whose_only_member_is_silent_becomes_empty(talk: Talk) -> None:
    a = Member(talk, "a", session_timeout_ms=Millis(600))
    gather([a])

    talk.wait_for_group(a.group, state="Empty", members=0)
    a.beat()
    a.ask_join()


@conversation()
def a_session_is_kept_by_syncing_members_that_wait(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", session_timeout_ms=Millis(600))
    assemble([a, b])
    b.send_sync()

    probe = Member(talk, "probe", group=talk.group("another"), session_timeout_ms=Millis(900))
    gather([probe])
    talk.wait_for_group(probe.group, state="Empty")
    a.sync({a.member_id: b"one", b.member_id: b"two"})
    b.hear()
    b.beat()
