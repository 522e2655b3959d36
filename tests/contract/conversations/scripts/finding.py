"""Finding the coordinator of a group, or of something else."""

from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.talking import Talk

_TRANSACTION, _SHARE = 1, 2


def finding(talk: Talk, *keys: str, kind: int = 0) -> FindCoordinatorRequest:
    if talk.version_of(FindCoordinatorRequest) < 4:
        (key,) = keys
        return FindCoordinatorRequest(key=key, key_type=kind)
    return FindCoordinatorRequest(coordinator_keys=keys, key_type=kind)


@conversation(vary=FindCoordinatorRequest)
def a_group_is_coordinated_here(talk: Talk) -> None:
    talk.speaker("a").ask(finding(talk, talk.group()))


@conversation(vary=FindCoordinatorRequest)
def a_group_without_a_name_is_coordinated_here(talk: Talk) -> None:
    talk.speaker("a").ask(finding(talk, ""))


@conversation(vary=FindCoordinatorRequest, since=4)
def many_are_found_at_once(talk: Talk) -> None:
    a = talk.speaker("a")

    a.ask(finding(talk, talk.group("x"), talk.group("y"), talk.group("x")))
    a.ask(finding(talk))


@conversation(vary=FindCoordinatorRequest, since=1)
def a_kind_that_does_not_exist_is_refused(talk: Talk) -> None:
    a = talk.speaker("a")

    a.provoke(finding(talk, talk.group(), kind=9))
    if talk.version_of(FindCoordinatorRequest) >= 4:
        a.provoke(finding(talk, talk.group("x"), talk.group("y"), kind=9))


@conversation(vary=FindCoordinatorRequest, since=1)
def transactions_are_not_coordinated_here(talk: Talk) -> None:
    name = talk.name("transaction")
    talk.wait_for_transactions(name)

    with talk.deviates("there is no transaction or share coordinator here", "answer*"):
        talk.speaker("a").ask(finding(talk, name, kind=_TRANSACTION))


@conversation(vary=FindCoordinatorRequest, since=1)
def shares_are_not_coordinated_here(talk: Talk) -> None:
    talk.speaker("a").provoke(finding(talk, "no share", kind=_SHARE))
