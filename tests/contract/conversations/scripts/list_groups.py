"""ListGroups, by state and type. Only the groups of the conversation are compared."""

from typing import Any

from kohort.types import GroupId
from kohort.wire.api.k16_list_groups import ListGroupsRequest, ListGroupsResponse
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.members import Member, assemble, gather, offset_of, protocols
from tests.contract.conversations.session import Client, Session, narrowed


def ask(client: Client, session: Session, *, states: Any = (), types: Any = ()) -> None:
    """List groups, and compare only those of this conversation."""
    mark = session.name("")

    def ours(answer: ListGroupsResponse) -> ListGroupsResponse:
        groups = tuple(each for each in answer.groups if each.group_id.endswith(mark))
        return narrowed(answer, groups=groups)

    client.ask(ListGroupsRequest(states_filter=states, types_filter=types), transform=ours)


def a_group_in_every_state(session: Session) -> Client:
    def member(state: str, **fields: Any) -> Member:
        return Member(session, state, group=session.group(state), **fields)

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
    session.wait_for_group(preparing.group, state="PreparingRebalance", members=2)
    t = session.topic()
    member("simple").commit(offset_of(t, topic_id=session.find_topic_id(t)))
    member("promised").ask_join()
    other = member("other", protocol_type="connect", protocols=protocols(compatible=b"a"))
    other.join()
    return stable.client


@conversation(vary=ListGroupsRequest)
def every_group_is_listed(session: Session) -> None:
    client = a_group_in_every_state(session)

    ask(client, session)


@conversation(vary=ListGroupsRequest, since=4)
def the_state_filter_is_case_insensitive(session: Session) -> None:
    client = a_group_in_every_state(session)

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
        ask(client, session, states=states)


@conversation(vary=ListGroupsRequest, since=5)
def the_type_filter_is_case_insensitive(session: Session) -> None:
    client = a_group_in_every_state(session)

    for types in (
        ("classic",),
        ("CLASSIC", "consumer"),
        ("consumer",),
        ("share",),
        ("",),
        ("no such type",),
    ):
        ask(client, session, types=types)
    ask(client, session, types=("classic",), states=("Stable",))


@conversation(vary=ListGroupsRequest)
def a_group_that_does_not_exist_is_not_listed(session: Session) -> None:
    a = Member(session, "a", group=GroupId(session.name("left")))
    a.beat()

    ask(a.client, session)
