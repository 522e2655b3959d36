"""What a member does on every error code of each of its requests.

The tables list special cases, as in Kafka's client; all other codes have the default effect.
"""

from collections.abc import Mapping

import pytest

from kohort.client.member.member_events import ResponseReceived
from kohort.types import ErrorCode, MemberId
from tests.client.coordinator_bridge import error_response
from tests.client.trace_player import Player
from tests.coordinator.trace_player import Stanza

SEARCHES = "searches the coordinator"
REBALANCES = "its partitions are revoked; the same member joins"
RETRIABLE = (
    "CORRUPT_MESSAGE LEADER_NOT_AVAILABLE NOT_LEADER_OR_FOLLOWER REQUEST_TIMED_OUT "
    "REPLICA_NOT_AVAILABLE NETWORK_EXCEPTION COORDINATOR_LOAD_IN_PROGRESS NOT_ENOUGH_REPLICAS "
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND NOT_CONTROLLER CONCURRENT_TRANSACTIONS KAFKA_STORAGE_ERROR "
    "FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH LISTENER_NOT_FOUND FENCED_LEADER_EPOCH "
    "UNKNOWN_LEADER_EPOCH OFFSET_NOT_AVAILABLE PREFERRED_LEADER_NOT_AVAILABLE "
    "ELIGIBLE_LEADERS_NOT_AVAILABLE ELECTION_NOT_NEEDED UNSTABLE_OFFSET_COMMIT "
    "THROTTLING_QUOTA_EXCEEDED UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID FETCH_SESSION_TOPIC_ID_ERROR "
    "SHARE_SESSION_NOT_FOUND INVALID_SHARE_SESSION_EPOCH SHARE_SESSION_LIMIT_REACHED "
    "UNKNOWN_TOPIC_OR_PARTITION"
)
WITH_ADVICE = (
    "INCONSISTENT_GROUP_PROTOCOL INVALID_SESSION_TIMEOUT INVALID_GROUP_ID "
    "GROUP_AUTHORIZATION_FAILED GROUP_MAX_SIZE_REACHED UNSUPPORTED_VERSION"
)
NOT_THERE = "COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR"

FENCED = "FencedInstanceIdError"
LOST = "its partitions are lost"

JOINING = ["subscribe t1", "poll", "response find b1", "response join MEMBER_ID_REQUIRED member=m2"]
BEFORE = {
    "find": ["subscribe t1", "poll"],
    "join": JOINING,
    "sync": [*JOINING, "response join gen=1 member=m2 leader=m1"],
    "heartbeat": ["given t1:0", "advance 3s"],
    "commit": ["given t1:0", "commit 1 t1:0=5"],
    "fetch": ["given t1:0", "fetch-committed 1 t1:0"],
    "leave": ["given t1:0", "close", "returned"],
}
DEFAULT = {
    "find": "fails with BrokerResponseError(*)",
    "join": "fails with BrokerResponseError(*)",
    "sync": "fails with BrokerResponseError(*)",
    "heartbeat": "later heartbeat again",
    "commit": "returns BrokerResponseError(*)",
    "fetch": "returns BrokerResponseError(*)",
    "leave": "closed",
}
SPECIAL: dict[str, dict[str, str]] = {
    "find": {
        RETRIABLE: f"later {SEARCHES}",
        NOT_THERE: f"later {SEARCHES}",
        WITH_ADVICE: "fails with GroupRejectedError(*)",
    },
    "join": {
        "COORDINATOR_LOAD_IN_PROGRESS": "later the same member joins",
        "UNKNOWN_MEMBER_ID": "a new member joins",
        # Unexpected for a member that has an id: back off instead of looping.
        "MEMBER_ID_REQUIRED": "later the same member joins",
        "REBALANCE_IN_PROGRESS": "the same member joins",
        NOT_THERE: f"{SEARCHES}; later the same member joins",
        "FENCED_INSTANCE_ID": "fails with FencedInstanceIdError",
        WITH_ADVICE: "fails with GroupRejectedError(*)",
    },
    "sync": {
        "REBALANCE_IN_PROGRESS": "the same member joins",
        "ILLEGAL_GENERATION": "the same member joins",
        "UNKNOWN_MEMBER_ID": "a new member joins",
        NOT_THERE: f"{SEARCHES}; later the same member joins",
        "FENCED_INSTANCE_ID": "fails with FencedInstanceIdError",
        WITH_ADVICE: "fails with GroupRejectedError(*)",
    },
    "heartbeat": {
        "REBALANCE_IN_PROGRESS": REBALANCES,
        "ILLEGAL_GENERATION": f"{LOST}; the same member joins",
        "UNKNOWN_MEMBER_ID": f"{LOST}; a new member joins",
        # It joins again because the application polls again.
        "FENCED_INSTANCE_ID": f"fails with {FENCED}; {LOST}; a new member joins",
        NOT_THERE: f"{SEARCHES}; later heartbeat again",
    },
    "commit": {
        "COORDINATOR_LOAD_IN_PROGRESS UNKNOWN_TOPIC_OR_PARTITION": "later commit again",
        f"{NOT_THERE} REQUEST_TIMED_OUT": f"{SEARCHES}; later commit again",
        "REBALANCE_IN_PROGRESS": f"returns RebalanceInProgressError; {REBALANCES}",
        "ILLEGAL_GENERATION": (f"returns CommitFailedError; {LOST}; the same member joins"),
        "UNKNOWN_MEMBER_ID": f"returns CommitFailedError; {LOST}; a new member joins",
        "FENCED_INSTANCE_ID": (
            f"fails with {FENCED}; returns {FENCED}; {LOST}; a new member joins"
        ),
        WITH_ADVICE: "returns GroupRejectedError(*)",
    },
    "fetch": {
        RETRIABLE: "later fetch again",
        NOT_THERE: f"{SEARCHES}; later fetch again",
        WITH_ADVICE: "returns GroupRejectedError(*)",
    },
    "leave": {},
}


@pytest.mark.parametrize("kind", BEFORE)
def test_every_error_code_has_its_effect(kind: str) -> None:
    expected = _expand(SPECIAL[kind], DEFAULT[kind])

    found = {error.name: effect_of(kind, error) for error in ErrorCode if error}

    assert found == expected


@pytest.mark.parametrize("kind", BEFORE)
def test_an_unknown_error_code_is_handled_like_an_unknown_server_error(kind: str) -> None:
    unknown_code = 9_999
    assert unknown_code not in {int(error) for error in ErrorCode}

    assert effect_of(kind, ErrorCode.UNKNOWN_SERVER_ERROR, unknown_code) == DEFAULT[kind]


def effect_of(kind: str, error: ErrorCode, code: int | None = None) -> str:
    """A short description of the effects of this response, if the application polls again."""
    player = Player()

    def perform(line: str) -> list[str]:
        return _descriptions(player.perform(Stanza([line], [])), error)

    for line in BEFORE[kind]:
        perform(line)
    request = list(player.requests.values())[-1]
    body = error_response(request.body, error if code is None else code, MemberId("m2"))
    player.lines = []
    player.feed(ResponseReceived(request_id=request.request_id, body=body))
    words = _descriptions(player.lines, error)
    if kind in ("heartbeat", "commit"):
        gone = [each for each in perform("poll") if each.startswith("its partitions")]
        words += gone + (perform("returned") if gone else [])
    if SEARCHES in words:
        perform("response find b1")
    words += [f"later {each}" for each in perform("advance +100")]
    return "; ".join(words)


def _descriptions(lines: list[str], error: ErrorCode) -> list[str]:
    spelled = [_describe(line.replace(error.name, "*")) for line in lines]
    return [each for each in spelled if each]


def _describe(line: str) -> str:
    verb, _, rest = line.partition(" ")
    match verb:
        case "failed":
            return f"fails with {rest}"
        case "committed" | "committed-offsets":
            return f"returns {rest.removeprefix('1 ')}"
        case "call":
            return f"its partitions are {rest.partition(' ')[0]}"
        case "send" if rest.startswith("find"):
            return SEARCHES
        case "send" if rest.startswith("join"):
            return "the same member joins" if " m2 " in rest else "a new member joins"
        case "send":
            return f"{rest.partition('#')[0]} again"
        case "closed":
            return verb
        case _:
            return ""


def _expand(particular: Mapping[str, str], otherwise: str) -> dict[str, str]:
    table = {error.name: otherwise for error in ErrorCode if error}
    for names, each in particular.items():
        unknown = set(names.split()) - set(table)
        assert not unknown, f"there is no {unknown}"
        table |= dict.fromkeys(names.split(), each)
    return table
