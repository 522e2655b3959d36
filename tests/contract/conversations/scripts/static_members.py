"""Static members: those who come back under the same instance, and what becomes of their old id."""

from collections.abc import Callable
from typing import Any

from kohort.types import MemberId, Millis
from kohort.wire.api.k11_join_group import JoinGroupRequest
from kohort.wire.api.k15_describe_groups import DescribeGroupsRequest
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import (
    NOBODY,
    Member,
    assemble,
    gather,
    offset_of,
    protocols,
    rejoin,
    subscription,
)
from tests.contract.conversations.talking import DEADLINE_S, Talk
from tests.waiting import wait_until


def again(talk: Talk, member: Member, name: str, **words: Any) -> Member:
    """The same instance, started anew: it knows its name, but not its id."""
    return Member(talk, name, instance=str(member.instance), **words)


@conversation(vary=JoinGroupRequest, since=5)
def a_leader_that_comes_back_to_a_stable_group_changes_nothing(talk: Talk) -> None:
    a, b = Member(talk, "a", instance="i"), Member(talk, "b")
    gather([a, b])

    new = again(talk, a, "a")
    new.join()
    new.sync()
    b.beat()
    new.beat()


@conversation(vary=JoinGroupRequest, since=5)
def a_follower_that_comes_back_to_a_stable_group_changes_nothing(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", instance="i")
    gather([a, b])

    new = again(talk, b, "b")
    new.join()
    new.sync()
    a.beat()
    new.beat()


@conversation(vary=JoinGroupRequest, since=5)
def the_old_id_of_a_member_that_came_back_is_fenced_everywhere(talk: Talk) -> None:
    t = talk.topic()
    topic_id = talk.find_topic_id(t)
    a = Member(talk, "a", instance="i")
    gather([a])
    again(talk, a, "a").join()

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
def a_known_static_member_that_joins_again_is_like_any_other(talk: Talk) -> None:
    a, b = Member(talk, "a", instance="i"), Member(talk, "b", instance="j")
    gather([a, b])

    b.join()
    b.beat()


@conversation(vary=JoinGroupRequest, since=5)
def an_instance_with_an_id_that_is_not_its_own_is_fenced(talk: Talk) -> None:
    a, b = Member(talk, "a", instance="i"), Member(talk, "b", instance="j")
    gather([a, b])

    b.ask_join(group_instance_id="i")
    b.ask_join(member_id=NOBODY)
    b.ask_join(group_instance_id="unheard of")


@conversation(vary=JoinGroupRequest, since=5)
def a_changed_subscription_of_one_who_comes_back_waits_for_the_next_rebalance(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", instance="i")
    gather([a, b])

    changed = protocols(range=subscription(note="changed"))
    again(talk, b, "b", protocols=changed).join()
    a.beat()


@conversation(vary=JoinGroupRequest, since=5)
def one_who_comes_back_with_other_protocols_may_start_a_rebalance(talk: Talk) -> None:
    both = protocols(range=subscription(), sticky=subscription())
    other = protocols(sticky=subscription(), range=subscription())
    a, b = Member(talk, "a", protocols=both), Member(talk, "b", instance="i", protocols=both)
    c = Member(talk, "c", protocols=other)
    gather([a, b, c])

    new = again(talk, b, "b", protocols=other)
    new.send_join()
    talk.wait_for_group(a.group, state="PreparingRebalance")
    c.send_join()
    a.join()
    new.hear_join()
    c.hear_join()


@conversation(vary=JoinGroupRequest, since=5)
def one_who_comes_back_with_a_protocol_nobody_else_has_is_refused(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", instance="i")
    gather([a, b])

    again(talk, b, "b", protocols=protocols(sticky=subscription())).ask_join()
    b.beat()


@conversation(vary=JoinGroupRequest, since=5)
def one_who_comes_back_before_the_assignment_starts_it_over(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", instance="i")
    assemble([a, b])

    new = again(talk, b, "b")
    new.send_join()
    talk.wait_for_group(a.group, state="PreparingRebalance")
    a.join()
    new.hear_join()


@conversation(vary=JoinGroupRequest, since=5)
def a_join_that_waits_is_fenced_by_its_instance_coming_back(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", instance="i")
    gather([a])
    b.send_join()
    talk.wait_for_group(a.group, state="PreparingRebalance", members=2)

    new = again(talk, b, "b")
    new.send_join()
    b.hear_join()
    rejoin(a, [])
    new.hear_join()


@conversation(vary=JoinGroupRequest, since=5)
def a_sync_that_waits_is_fenced_by_its_instance_coming_back(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", instance="i")
    assemble([a, b])
    b.send_sync()
    talk.wait_for_group(a.group, state="CompletingRebalance")

    new = again(talk, b, "b")
    new.send_join()
    b.hear()
    a.join()
    new.hear_join()


@conversation()
def a_static_member_that_is_late_for_a_rebalance_stays(talk: Talk) -> None:
    short: dict[str, Any] = {"rebalance_timeout_ms": Millis(800)}
    a, b = Member(talk, "a", **short), Member(talk, "b", instance="i", **short)
    gather([a, b])

    a.join()
    b.beat()
    b.beat(generation_id=a.generation)


@conversation()
def a_static_member_that_is_silent_for_its_session_is_removed(talk: Talk) -> None:
    a, b = Member(talk, "a"), Member(talk, "b", instance="i", session_timeout_ms=Millis(600))
    gather([a, b])

    talk.wait_for_group(a.group, state="PreparingRebalance", members=1)
    b.beat()
    b.ask_join()


@conversation()
def one_who_comes_back_has_a_session_of_its_own(talk: Talk) -> None:
    a = Member(talk, "a", instance="i", session_timeout_ms=Millis(600))
    gather([a])
    new = again(talk, a, "a", session_timeout_ms=Millis(60_000))
    new.join()

    wait_until(start_clock(talk), DEADLINE_S, "time to pass")
    with talk.deviates("Kafka measures the new self's first session", "answer.error_code"):
        new.beat()


@conversation()
def one_who_comes_back_may_sync_for_its_old_self(talk: Talk) -> None:
    short: dict[str, Any] = {"rebalance_timeout_ms": Millis(600)}
    a, b = Member(talk, "a", **short), Member(talk, "b", instance="i", **short)
    assemble([a, b])
    a.sync({a.member_id: b"one", b.member_id: b"two"})
    new = again(talk, b, "b", **short)
    new.join()
    new.sync()

    is_over = start_clock(talk)
    with talk.deviates("Kafka goes on waiting for a sync under the old id", "answer.error_code"):
        a.speaker.ask_until(a.beating(), lambda answer: answer.error_code or is_over())


def start_clock(talk: Talk) -> Callable[[], bool]:
    """Tells whether a session of more than a second that began here, elsewhere, is over."""
    clock = Member(talk, "clock", group=talk.group("clock"), session_timeout_ms=Millis(1200))
    gather([clock])
    question = DescribeGroupsRequest(groups=(clock.group,))
    return lambda: bool(talk.peek(question).groups[0].group_state == "Empty")


@conversation()
def a_static_member_may_take_an_id_that_was_promised(talk: Talk) -> None:
    a = Member(talk, "a")
    a.ask_join()

    a.instance = None
    with talk.deviates("ids are only issued to dynamic members", "answer*"):
        a.ask_join(group_instance_id="i")


@conversation()
def an_instance_without_a_name_is_an_instance(talk: Talk) -> None:
    a = Member(talk, "a", instance="")

    a.ask_join()
    a.beat()
    a.ask_join(member_id=MemberId(""))
