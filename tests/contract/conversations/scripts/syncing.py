"""Syncing: how the leader's assignment reaches everyone, and who is kept from it."""

from dataclasses import replace

from kohort.types import Generation, GroupId, Millis
from kohort.wire.api.k14_sync_group import SyncGroupRequest
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import NOBODY, Member, assemble, gather
from tests.contract.conversations.talking import Talk


@conversation(vary=SyncGroupRequest)
def a_leader_alone_is_given_its_own_assignment(talk: Talk) -> None:
    gather([Member(talk, "a")])


@conversation(vary=SyncGroupRequest)
def everyone_is_given_what_the_leader_assigned(talk: Talk) -> None:
    gather([Member(talk, "a"), Member(talk, "b"), Member(talk, "c")])


@conversation(vary=SyncGroupRequest)
def a_follower_waits_for_the_leader(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    assemble([a, b])

    b.send_sync()
    a.sync({a.member_id: b"one", b.member_id: b"two"})
    b.hear()


@conversation(vary=SyncGroupRequest)
def who_is_assigned_nothing_is_given_nothing(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    assemble([a, b])

    a.sync({a.member_id: b"all"})
    b.sync()


@conversation(vary=SyncGroupRequest)
def an_assignment_for_a_stranger_is_dropped(talk: Talk) -> None:
    a = Member(talk, "a")
    a.join()

    a.sync({a.member_id: b"mine", NOBODY: b"nobody's"})


@conversation(vary=SyncGroupRequest)
def a_member_named_twice_is_given_the_last_share(talk: Talk) -> None:
    a = Member(talk, "a")
    a.join()
    first, second = (a.syncing({a.member_id: share}).assignments for share in (b"1st", b"2nd"))

    a.speaker.ask(replace(a.syncing(), assignments=(*first, *second)))


@conversation(vary=SyncGroupRequest)
def a_follower_has_no_say_in_the_assignment(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    assemble([a, b])

    b.send_sync({a.member_id: b"b's idea", b.member_id: b"b's idea"})
    a.sync({a.member_id: b"one", b.member_id: b"two"})
    b.hear()


@conversation(vary=SyncGroupRequest)
def syncing_again_brings_the_same_assignment(talk: Talk) -> None:
    a = Member(talk, "a")
    gather([a])

    a.sync()
    a.sync({a.member_id: b"another"})


# Refusals


@conversation(vary=SyncGroupRequest)
def a_group_without_a_name_cannot_be_synced(talk: Talk) -> None:
    Member(talk, "a").sync(group_id=GroupId(""))


@conversation(vary=SyncGroupRequest)
def nobody_is_known_in_a_group_that_does_not_exist(talk: Talk) -> None:
    Member(talk, "a").sync(member_id=NOBODY)


@conversation(vary=SyncGroupRequest)
def a_stranger_is_unknown_before_its_generation_is_looked_at(talk: Talk) -> None:
    a, stranger = Member(talk, "a"), Member(talk, "stranger")
    gather([a])

    stranger.sync(member_id=NOBODY, generation_id=Generation(1))
    stranger.sync()


@conversation(vary=SyncGroupRequest)
def a_member_that_has_left_is_unknown(talk: Talk) -> None:
    a = Member(talk, "a")
    gather([a])
    a.leave()

    a.sync()


@conversation(vary=SyncGroupRequest)
def another_generation_is_refused(talk: Talk) -> None:
    a = Member(talk, "a")
    a.join()

    a.sync(generation_id=Generation(0))
    a.sync(generation_id=Generation(2))
    a.sync(generation_id=Generation(-1))


@conversation(vary=SyncGroupRequest, since=5)
def another_protocol_is_refused(talk: Talk) -> None:
    a = Member(talk, "a")
    a.join()

    a.sync(protocol_type="connect")
    a.sync(protocol_name="sticky")
    a.sync(protocol_type="connect", generation_id=Generation(9))


@conversation(vary=SyncGroupRequest, since=5)
def since_version_5_the_protocol_must_be_told(talk: Talk) -> None:
    a = Member(talk, "a")
    a.join()

    a.sync(protocol_type=None)
    a.sync(protocol_name=None)
    a.sync(protocol_name=None, group_id=GroupId(""))


@conversation(vary=SyncGroupRequest)
def during_a_rebalance_nobody_is_synced(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a])
    b.send_join()
    talk.wait_for_group(a.group, state="PreparingRebalance", members=2)

    a.sync({a.member_id: b"too late"})


@conversation(vary=SyncGroupRequest)
def a_sync_that_waits_is_sent_back_when_the_group_rebalances(talk: Talk) -> None:
    a, b, c = Member(talk, "a"), Member(talk, "b"), Member(talk, "c")
    assemble([a, b])
    b.send_sync()

    c.send_join()
    b.hear()


@conversation(vary=SyncGroupRequest, since=3)
def a_static_member_syncs_under_its_instance(talk: Talk) -> None:
    a = Member(talk, "a", instance="i")
    gather([a])

    a.sync(group_instance_id="other")
    a.sync(member_id=NOBODY)


# Time


@conversation()
def a_follower_that_does_not_sync_in_time_is_removed(talk: Talk) -> None:
    a = Member(talk, "a", rebalance_timeout_ms=Millis(800))
    b = Member(talk, "b", rebalance_timeout_ms=Millis(800))
    assemble([a, b])
    a.sync({a.member_id: b"one", b.member_id: b"two"})

    talk.wait_for_group(a.group, state="PreparingRebalance", members=1)
    a.join()
    b.sync()


@conversation()
def a_leader_that_does_not_sync_in_time_is_removed(talk: Talk) -> None:
    a = Member(talk, "a", rebalance_timeout_ms=Millis(800))
    b = Member(talk, "b", rebalance_timeout_ms=Millis(800))
    assemble([a, b])

    b.sync()
    b.join()
    a.beat()


# Repeating oneself


@conversation()
def a_sync_that_is_repeated_elsewhere_is_answered_there(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    assemble([a, b])
    b.send_sync()
    talk.let_pass()

    again = talk.speaker("b again")
    again.send(b.syncing())
    talk.let_pass()
    a.sync({a.member_id: b"one", b.member_id: b"two"})
    again.hear()
    with talk.deviates("Kafka forgets a sync that its own member has repeated", "answer"):
        b.speaker.hear_if_any()
