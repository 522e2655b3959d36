"""FindCoordinator, for groups and other key types."""

from kohort.wire.api.k10_find_coordinator import FindCoordinatorRequest
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.session import Session

_TRANSACTION, _SHARE = 1, 2


def find_request(session: Session, *keys: str, kind: int = 0) -> FindCoordinatorRequest:
    if session.version_of(FindCoordinatorRequest) < 4:
        (key,) = keys
        return FindCoordinatorRequest(key=key, key_type=kind)
    return FindCoordinatorRequest(coordinator_keys=keys, key_type=kind)


@conversation(vary=FindCoordinatorRequest)
def this_broker_is_the_coordinator_of_a_group(session: Session) -> None:
    session.client("a").ask(find_request(session, session.group()))


@conversation(vary=FindCoordinatorRequest)
def this_broker_is_the_coordinator_of_the_unnamed_group(session: Session) -> None:
    session.client("a").ask(find_request(session, ""))


@conversation(vary=FindCoordinatorRequest, since=4)
def many_coordinators_are_found_with_one_request(session: Session) -> None:
    a = session.client("a")

    a.ask(find_request(session, session.group("x"), session.group("y"), session.group("x")))
    a.ask(find_request(session))


@conversation(vary=FindCoordinatorRequest, since=1)
def an_unknown_key_type_is_refused(session: Session) -> None:
    a = session.client("a")

    a.ask_or_disconnect(find_request(session, session.group(), kind=9))
    if session.version_of(FindCoordinatorRequest) >= 4:
        a.ask_or_disconnect(find_request(session, session.group("x"), session.group("y"), kind=9))


@conversation(vary=FindCoordinatorRequest, since=1)
def there_is_no_transaction_coordinator(session: Session) -> None:
    name = session.name("transaction")
    session.wait_for_transactions(name)

    with session.deviates("there is no transaction or share coordinator", "answer*"):
        session.client("a").ask(find_request(session, name, kind=_TRANSACTION))


@conversation(vary=FindCoordinatorRequest, since=1)
def there_is_no_share_coordinator(session: Session) -> None:
    session.client("a").ask_or_disconnect(find_request(session, "no share", kind=_SHARE))
