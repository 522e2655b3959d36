"""Joining a group: ids, generations, leaders, and every reason to be refused."""

from typing import Any

from kohort.types import GroupId, Millis
from kohort.wire.api.k11_join_group import JoinGroupRequest
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import (
    NOBODY,
    Member,
    assemble,
    gather,
    protocols,
    rejoin,
    subscription,
)
from tests.contract.conversations.talking import Talk

# Ids


@conversation(vary=JoinGroupRequest)
def a_newcomer_without_an_id_is_given_one(talk: Talk) -> None:
    Member(talk, "a").ask_join()


@conversation(vary=JoinGroupRequest)
def a_member_of_nothing_but_itself_leads_at_once(talk: Talk) -> None:
    Member(talk, "a").join()


@conversation(vary=JoinGroupRequest, since=4)
def two_newcomers_on_one_connection_get_two_ids(talk: Talk) -> None:
    a = Member(talk, "a")

    a.speaker.ask(a.joining())
    a.speaker.ask(a.joining())


@conversation(vary=JoinGroupRequest, since=4)
def a_client_without_a_name_is_given_an_id_all_the_same(talk: Talk) -> None:
    Member(talk, "nameless", client_id=None).ask_join()


@conversation()
def a_client_without_a_name_is_a_member_like_others(talk: Talk) -> None:
    gather([Member(talk, "nameless", client_id=None)])


@conversation(vary=JoinGroupRequest, since=5)
def a_static_member_is_named_after_its_instance(talk: Talk) -> None:
    Member(talk, "a", instance="i").join()


# Refusals


@conversation(vary=JoinGroupRequest)
def a_group_without_a_name_cannot_be_joined(talk: Talk) -> None:
    Member(talk, "a").ask_join(group_id=GroupId(""))


@conversation(vary=JoinGroupRequest)
def a_session_outside_the_limits_is_refused(talk: Talk) -> None:
    a = Member(talk, "a")

    a.ask_join(session_timeout_ms=Millis(499))
    a.ask_join(session_timeout_ms=Millis(1_800_001))
    a.ask_join(session_timeout_ms=Millis(-1), member_id=NOBODY)


@conversation(vary=JoinGroupRequest)
def an_id_is_unknown_to_a_group_that_does_not_exist(talk: Talk) -> None:
    Member(talk, "a").ask_join(member_id=NOBODY)


@conversation(vary=JoinGroupRequest)
def an_id_that_was_never_given_is_unknown(talk: Talk) -> None:
    a, stranger = Member(talk, "a"), Member(talk, "stranger")
    gather([a])

    stranger.ask_join(member_id=NOBODY)


@conversation(vary=JoinGroupRequest)
def an_id_is_unknown_to_a_group_that_everybody_has_left(talk: Talk) -> None:
    a = Member(talk, "a")
    gather([a])
    a.leave()

    a.ask_join()


@conversation(vary=JoinGroupRequest)
def a_first_member_needs_a_protocol_and_a_type(talk: Talk) -> None:
    a = Member(talk, "a")

    a.ask_join(protocols=())
    a.ask_join(protocol_type="")


@conversation(vary=JoinGroupRequest)
def a_group_has_one_protocol_type(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a])

    b.ask_join(protocol_type="connect")
    b.ask_join(protocol_type="")


@conversation(vary=JoinGroupRequest)
def members_must_have_a_protocol_in_common(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a])

    b.ask_join(protocols=protocols(sticky=subscription()))
    b.ask_join(protocols=())


@conversation(vary=JoinGroupRequest)
def a_known_member_may_not_change_to_a_protocol_of_its_own(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a, b])

    b.ask_join(protocols=protocols(sticky=subscription()))
    b.ask_join(protocol_type="connect")


@conversation(vary=JoinGroupRequest, house="strict")
def a_full_group_takes_nobody_in(talk: Talk) -> None:
    a, b, c = Member(talk, "a"), Member(talk, "b"), Member(talk, "c")
    gather([a, b])

    c.ask_join()
    c.ask_join(member_id=NOBODY)
    b.ask_join()


@conversation(house="strict")
def a_promised_member_is_refused_when_the_group_has_filled_up_meanwhile(talk: Talk) -> None:
    a, b, c = (Member(talk, each, rebalance_timeout_ms=Millis(60_000)) for each in "abc")
    gather([a])
    b.ask_join()
    c.ask_join()

    b.send_join()
    talk.wait_for_group(a.group, state="PreparingRebalance", members=2)
    a.send_join()
    talk.let_pass()
    c.ask_join()
    with talk.deviates("Kafka 4 lets the others wait for the timeout", "answer"):
        a.speaker.hear_if_any()


# Generations


@conversation(vary=JoinGroupRequest)
def two_members_meet_in_the_next_generation(talk: Talk) -> None:
    assemble([Member(talk, "a"), Member(talk, "b")])


@conversation(vary=JoinGroupRequest)
def three_members_meet_and_the_first_leads(talk: Talk) -> None:
    assemble([Member(talk, "a"), Member(talk, "b"), Member(talk, "c")])


@conversation(vary=JoinGroupRequest)
def a_leader_that_joins_again_starts_a_rebalance(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a, b])

    a.send_join()
    talk.wait_for_group(a.group, state="PreparingRebalance")
    b.join()
    a.hear_join()


@conversation(vary=JoinGroupRequest)
def a_follower_that_joins_again_unchanged_is_told_the_generation(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a, b])

    b.join()
    b.beat()


@conversation(vary=JoinGroupRequest)
def a_follower_that_joins_again_changed_starts_a_rebalance(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a, b])

    b.send_join(protocols=protocols(range=subscription(note="changed")))
    talk.wait_for_group(a.group, state="PreparingRebalance")
    a.join()
    b.hear_join()


@conversation(vary=JoinGroupRequest)
def joining_again_before_the_assignment_brings_the_same_generation(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    assemble([a, b])

    a.join()
    b.join()


@conversation(vary=JoinGroupRequest)
def joining_changed_before_the_assignment_starts_over(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    assemble([a, b])

    b.send_join(protocols=protocols(range=subscription(note="changed")))
    talk.wait_for_group(a.group, state="PreparingRebalance")
    a.join()
    b.hear_join()


@conversation(vary=JoinGroupRequest)
def a_group_left_by_all_counts_on(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a])
    a.leave()

    b.join()


@conversation(vary=JoinGroupRequest)
def the_protocol_with_most_votes_is_taken(talk: Talk) -> None:
    a = Member(
        talk, "a", protocols=protocols(range=subscription(note="a"), sticky=subscription(note="a"))
    )
    b = Member(
        talk, "b", protocols=protocols(sticky=subscription(note="b"), range=subscription(note="b"))
    )
    c = Member(
        talk,
        "c",
        protocols=protocols(
            own=subscription(note="c"), sticky=subscription(note="c"), range=subscription(note="c")
        ),
    )

    assemble([a, b, c])


@conversation(vary=JoinGroupRequest, since=8)
def a_reason_changes_nothing_in_the_answer(talk: Talk) -> None:
    Member(talk, "a").join(reason="for a change")


@conversation()
def a_member_that_names_a_protocol_twice_is_taken_in(talk: Talk) -> None:
    twice = (
        *protocols(range=subscription(note="first")),
        *protocols(range=subscription(note="second")),
    )

    a = Member(talk, "a")
    a.send_join(protocols=twice)
    with talk.deviates("Kafka fails over a member that names a protocol twice", "answer"):
        a.speaker.hear_if_any()


@conversation(vary=JoinGroupRequest)
def a_group_may_have_any_name(talk: Talk) -> None:
    for name in (" ", "\u00e9\u4e16\U0001f600", "a/b:c\n", "x" * 2000):
        gather([Member(talk, "a", group=talk.group(name))])


@conversation(vary=JoinGroupRequest)
def a_subscription_that_ends_early_is_nobody_elses_business(talk: Talk) -> None:
    a = Member(talk, "a", protocols=protocols(range=b"?"))

    gather([a])


@conversation()
def a_subscription_to_more_topics_than_it_names_is_taken_in(talk: Talk) -> None:
    a = Member(talk, "a", protocols=protocols(range=b"\x00\x00\x7f\xff\xff\xff and so on"))

    a.send_join()
    with talk.deviates("Kafka fails over a subscription that it cannot read", "answer*"):
        a.speaker.hear_if_any()


@conversation(vary=JoinGroupRequest)
def a_type_of_group_that_is_not_for_consumers_is_as_welcome(talk: Talk) -> None:
    a = Member(
        talk, "a", protocol_type="connect", protocols=protocols(compatible=subscription(note="a"))
    )

    a.join()
    a.sync({a.member_id: b"work"}, protocol_type="connect", protocol_name="compatible")


# Time


@conversation()
def who_does_not_come_back_in_time_is_left_out(talk: Talk) -> None:
    short: dict[str, Any] = {"rebalance_timeout_ms": Millis(800), "session_timeout_ms": Millis(800)}
    a, b = Member(talk, "a", **short), Member(talk, "b", **short)
    gather([a])

    b.join()
    a.beat()


@conversation()
def a_promised_member_is_waited_for_until_its_session_is_over(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", session_timeout_ms=Millis(700))
    gather([a])
    b.ask_join()

    a.join()


@conversation()
def a_promised_member_that_waited_too_long_is_unknown(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", session_timeout_ms=Millis(600))
    gather([a])
    b.ask_join()
    a.join()

    b.ask_join()


@conversation(vary=JoinGroupRequest, since=4)
def a_promised_member_is_no_member_yet(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a])
    b.ask_join()

    b.beat()
    b.sync()


@conversation(house="patient")
def who_comes_within_the_initial_delay_is_in_the_first_generation(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")

    a.send_join()
    talk.wait_for_group(a.group, state="PreparingRebalance")
    b.send_join()
    a.hear_join()
    b.hear_join()


@conversation(house="patient")
def a_group_is_prepared_during_the_initial_delay(talk: Talk) -> None:
    a = Member(talk, "a")

    a.send_join()
    talk.wait_for_group(a.group, state="PreparingRebalance")
    Member(talk, "observer", group=a.group).beat()
    a.hear_join()


# Repeating oneself


@conversation()
def a_join_that_is_repeated_elsewhere_is_answered_there(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b")
    gather([a])
    b.send_join()
    talk.wait_for_group(a.group, state="PreparingRebalance", members=2)

    again = talk.speaker("b again", client_id="b")
    again.send(b.joining())
    talk.let_pass()
    rejoin(a, [])
    again.hear()
    with talk.deviates("Kafka forgets a join that its own member has repeated", "answer"):
        b.speaker.hear_if_any()
