"""JoinGroup: member ids, generations, leaders, and every error."""

from typing import Any

from kohort.types import GroupId, Millis
from kohort.wire.api.k11_join_group import JoinGroupRequest
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import (
    UNKNOWN_MEMBER,
    Member,
    assemble,
    gather,
    protocols,
    rejoin,
    subscription,
)
from tests.contract.conversations.session import Session

# Ids


@conversation(vary=JoinGroupRequest)
def a_join_without_a_member_id_is_given_one(session: Session) -> None:
    Member(session, "a").ask_join()


@conversation(vary=JoinGroupRequest)
def a_single_member_becomes_leader_at_once(session: Session) -> None:
    Member(session, "a").join()


@conversation(vary=JoinGroupRequest, since=4)
def two_joins_on_one_connection_get_two_member_ids(session: Session) -> None:
    a = Member(session, "a")

    a.client.ask(a.joining())
    a.client.ask(a.joining())


@conversation(vary=JoinGroupRequest, since=4)
def a_client_without_a_client_id_is_given_a_member_id(session: Session) -> None:
    Member(session, "nameless", client_id=None).ask_join()


@conversation()
def a_client_without_a_client_id_can_join(session: Session) -> None:
    gather([Member(session, "nameless", client_id=None)])


@conversation(vary=JoinGroupRequest, since=5)
def the_member_id_of_a_static_member_starts_with_its_instance_id(session: Session) -> None:
    Member(session, "a", instance="i").join()


# Refusals


@conversation(vary=JoinGroupRequest)
def a_group_without_a_name_cannot_be_joined(session: Session) -> None:
    Member(session, "a").ask_join(group_id=GroupId(""))


@conversation(vary=JoinGroupRequest)
def a_session_timeout_outside_the_limits_is_refused(session: Session) -> None:
    a = Member(session, "a")

    a.ask_join(session_timeout_ms=Millis(499))
    a.ask_join(session_timeout_ms=Millis(1_800_001))
    a.ask_join(session_timeout_ms=Millis(-1), member_id=UNKNOWN_MEMBER)


@conversation(vary=JoinGroupRequest)
def a_member_id_is_unknown_in_an_unknown_group(session: Session) -> None:
    Member(session, "a").ask_join(member_id=UNKNOWN_MEMBER)


@conversation(vary=JoinGroupRequest)
def a_made_up_member_id_is_unknown(session: Session) -> None:
    a, outsider = Member(session, "a"), Member(session, "outsider")
    gather([a])

    outsider.ask_join(member_id=UNKNOWN_MEMBER)


@conversation(vary=JoinGroupRequest)
def a_member_id_is_unknown_in_an_empty_group(session: Session) -> None:
    a = Member(session, "a")
    gather([a])
    a.leave()

    a.ask_join()


@conversation(vary=JoinGroupRequest)
def the_first_member_needs_a_protocol_and_a_protocol_type(session: Session) -> None:
    a = Member(session, "a")

    a.ask_join(protocols=())
    a.ask_join(protocol_type="")


@conversation(vary=JoinGroupRequest)
def a_group_has_one_protocol_type(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a])

    b.ask_join(protocol_type="connect")
    b.ask_join(protocol_type="")


@conversation(vary=JoinGroupRequest)
def members_must_have_a_protocol_in_common(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a])

    b.ask_join(protocols=protocols(sticky=subscription()))
    b.ask_join(protocols=())


@conversation(vary=JoinGroupRequest)
def a_member_cannot_change_to_an_inconsistent_protocol(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a, b])

    b.ask_join(protocols=protocols(sticky=subscription()))
    b.ask_join(protocol_type="connect")


@conversation(vary=JoinGroupRequest, profile="strict")
def a_full_group_refuses_new_members(session: Session) -> None:
    a, b, c = Member(session, "a"), Member(session, "b"), Member(session, "c")
    gather([a, b])

    c.ask_join()
    c.ask_join(member_id=UNKNOWN_MEMBER)
    b.ask_join()


@conversation(profile="strict")
def a_pending_member_is_refused_if_the_group_is_full_by_then(session: Session) -> None:
    a, b, c = (Member(session, each, rebalance_timeout_ms=Millis(60_000)) for each in "abc")
    gather([a])
    b.ask_join()
    c.ask_join()

    b.send_join()
    session.wait_for_group(a.group, state="PreparingRebalance", members=2)
    a.send_join()
    session.wait_for_processing()
    c.ask_join()
    with session.deviates("Kafka 4 waits for the rebalance timeout here", "answer"):
        a.client.receive_if_any()


# Generations


@conversation(vary=JoinGroupRequest)
def two_members_join_the_next_generation(session: Session) -> None:
    assemble([Member(session, "a"), Member(session, "b")])


@conversation(vary=JoinGroupRequest)
def three_members_join_and_the_first_is_leader(session: Session) -> None:
    assemble([Member(session, "a"), Member(session, "b"), Member(session, "c")])


@conversation(vary=JoinGroupRequest)
def a_leader_that_rejoins_starts_a_rebalance(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a, b])

    a.send_join()
    session.wait_for_group(a.group, state="PreparingRebalance")
    b.join()
    a.hear_join()


@conversation(vary=JoinGroupRequest)
def a_follower_that_rejoins_unchanged_gets_the_current_generation(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a, b])

    b.join()
    b.beat()


@conversation(vary=JoinGroupRequest)
def a_follower_that_rejoins_changed_starts_a_rebalance(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a, b])

    b.send_join(protocols=protocols(range=subscription(note="changed")))
    session.wait_for_group(a.group, state="PreparingRebalance")
    a.join()
    b.hear_join()


@conversation(vary=JoinGroupRequest)
def rejoining_unchanged_before_the_assignment_keeps_the_generation(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    assemble([a, b])

    a.join()
    b.join()


@conversation(vary=JoinGroupRequest)
def rejoining_changed_before_the_assignment_starts_a_rebalance(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    assemble([a, b])

    b.send_join(protocols=protocols(range=subscription(note="changed")))
    session.wait_for_group(a.group, state="PreparingRebalance")
    a.join()
    b.hear_join()


@conversation(vary=JoinGroupRequest)
def the_generation_continues_after_all_members_left(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a])
    a.leave()

    b.join()


@conversation(vary=JoinGroupRequest)
def the_protocol_with_most_votes_is_selected(session: Session) -> None:
    a = Member(
        session,
        "a",
        protocols=protocols(range=subscription(note="a"), sticky=subscription(note="a")),
    )
    b = Member(
        session,
        "b",
        protocols=protocols(sticky=subscription(note="b"), range=subscription(note="b")),
    )
    c = Member(
        session,
        "c",
        protocols=protocols(
            own=subscription(note="c"), sticky=subscription(note="c"), range=subscription(note="c")
        ),
    )

    assemble([a, b, c])


@conversation(vary=JoinGroupRequest, since=8)
def a_join_reason_does_not_change_the_response(session: Session) -> None:
    Member(session, "a").join(reason="for a change")


@conversation()
def a_member_that_names_a_protocol_twice_can_join(session: Session) -> None:
    twice = (
        *protocols(range=subscription(note="first")),
        *protocols(range=subscription(note="second")),
    )

    a = Member(session, "a")
    a.send_join(protocols=twice)
    with session.deviates("Kafka fails if a member names a protocol twice", "answer"):
        a.client.receive_if_any()


@conversation(vary=JoinGroupRequest)
def a_group_may_have_any_name(session: Session) -> None:
    for name in (" ", "\u00e9\u4e16\U0001f600", "a/b:c\n", "x" * 2000):
        gather([Member(session, "a", group=session.group(name))])


@conversation(vary=JoinGroupRequest)
def a_truncated_subscription_is_accepted(session: Session) -> None:
    a = Member(session, "a", protocols=protocols(range=b"?"))

    gather([a])


@conversation()
def a_subscription_with_a_wrong_topic_count_is_accepted(session: Session) -> None:
    a = Member(session, "a", protocols=protocols(range=b"\x00\x00\x7f\xff\xff\xff and so on"))

    a.send_join()
    with session.deviates(
        "for a subscription that cannot be decoded Kafka answers with an internal error", "answer*"
    ):
        a.client.receive_if_any()


@conversation(vary=JoinGroupRequest)
def a_group_of_another_protocol_type_can_be_joined(session: Session) -> None:
    a = Member(
        session,
        "a",
        protocol_type="connect",
        protocols=protocols(compatible=subscription(note="a")),
    )

    a.join()
    a.sync({a.member_id: b"work"}, protocol_type="connect", protocol_name="compatible")


# Time


@conversation()
def a_member_that_does_not_rejoin_in_time_is_removed(session: Session) -> None:
    short: dict[str, Any] = {"rebalance_timeout_ms": Millis(800), "session_timeout_ms": Millis(800)}
    a, b = Member(session, "a", **short), Member(session, "b", **short)
    gather([a])

    b.join()
    a.beat()


@conversation()
def the_rebalance_waits_for_a_pending_member_until_its_session_timeout(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b", session_timeout_ms=Millis(700))
    gather([a])
    b.ask_join()

    a.join()


@conversation()
def a_pending_member_is_unknown_after_its_session_timeout(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b", session_timeout_ms=Millis(600))
    gather([a])
    b.ask_join()
    a.join()

    b.ask_join()


@conversation(vary=JoinGroupRequest, since=4)
def a_pending_member_is_not_a_member_yet(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a])
    b.ask_join()

    b.beat()
    b.sync()


@conversation(profile="initial_delay")
def members_that_join_within_the_initial_delay_are_in_the_first_generation(
    session: Session,
) -> None:
    a, b = Member(session, "a"), Member(session, "b")

    a.send_join()
    session.wait_for_group(a.group, state="PreparingRebalance")
    b.send_join()
    a.hear_join()
    b.hear_join()


@conversation(profile="initial_delay")
def a_group_is_preparing_rebalance_during_the_initial_delay(session: Session) -> None:
    a = Member(session, "a")

    a.send_join()
    session.wait_for_group(a.group, state="PreparingRebalance")
    Member(session, "observer", group=a.group).beat()
    a.hear_join()


# Repeating oneself


@conversation()
def a_join_repeated_on_another_connection_is_answered_there(session: Session) -> None:
    a, b = Member(session, "a"), Member(session, "b")
    gather([a])
    b.send_join()
    session.wait_for_group(a.group, state="PreparingRebalance", members=2)

    again = session.client("b again", client_id="b")
    again.send(b.joining())
    session.wait_for_processing()
    rejoin(a, [])
    again.receive()
    with session.deviates(
        "If a member repeats JoinGroup, Kafka never responds to the first request", "answer"
    ):
        b.client.receive_if_any()
