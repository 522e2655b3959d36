"""Listing groups, all or by state and type. Only the groups of the conversation are looked at."""

from typing import Any

from kohort.types import GroupId
from kohort.wire.api.k16_list_groups import ListGroupsRequest, ListGroupsResponse
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import Member, assemble, gather, offset_of, protocols
from tests.contract.conversations.talking import Speaker, Talk, narrowed


def ask(speaker: Speaker, talk: Talk, *, states: Any = (), types: Any = ()) -> None:
    """List the groups that there are, as far as this conversation knows of them."""
    mark = talk.name("")

    def ours(answer: ListGroupsResponse) -> ListGroupsResponse:
        groups = tuple(each for each in answer.groups if each.group_id.endswith(mark))
        return narrowed(answer, groups=groups)

    speaker.ask(ListGroupsRequest(states_filter=states, types_filter=types), through=ours)


def a_group_in_every_state(talk: Talk) -> Speaker:
    def member(state: str, **words: Any) -> Member:
        return Member(talk, state, group=talk.group(state), **words)

    stable = member("stable")
    gather([stable])
    assemble([member("completing")])
    empty = member("empty")
    gather([empty])
    empty.leave()
    preparing, late = member("preparing"), member("late")
    late.group = preparing.group
    gather([preparing])
    late.send_join()
    talk.wait_for_group(preparing.group, state="PreparingRebalance", members=2)
    t = talk.topic()
    member("simple").commit(offset_of(t, topic_id=talk.find_topic_id(t)))
    member("promised").ask_join()
    other = member("other", protocol_type="connect", protocols=protocols(compatible=b"a"))
    other.join()
    return stable.speaker


@conversation(vary=ListGroupsRequest)
def every_group_is_listed(talk: Talk) -> None:
    speaker = a_group_in_every_state(talk)

    ask(speaker, talk)


@conversation(vary=ListGroupsRequest, since=4)
def groups_are_listed_by_state_whatever_its_case(talk: Talk) -> None:
    speaker = a_group_in_every_state(talk)

    for states in (
        ("Stable",),
        ("stable", "EMPTY"),
        ("PreparingRebalance",),
        ("completingrebalance",),
        ("Dead",),
        ("Assigning", "Reconciling"),
        ("",),
        ("no such state",),
        (" stable",),
    ):
        ask(speaker, talk, states=states)


@conversation(vary=ListGroupsRequest, since=5)
def groups_are_listed_by_type_whatever_its_case(talk: Talk) -> None:
    speaker = a_group_in_every_state(talk)

    for types in (
        ("classic",),
        ("CLASSIC", "consumer"),
        ("consumer",),
        ("share",),
        ("",),
        ("no such type",),
    ):
        ask(speaker, talk, types=types)
    ask(speaker, talk, types=("classic",), states=("Stable",))


@conversation(vary=ListGroupsRequest)
def a_group_that_does_not_exist_is_not_listed(talk: Talk) -> None:
    a = Member(talk, "a", group=GroupId(talk.name("left")))
    a.beat()

    ask(a.speaker, talk)
