"""What a member does about every error that each of its requests can be answered with.

The tables name what is particular, as Kafka's client does it; everything else meets one fate.
"""

from collections.abc import Mapping

import pytest

from kohort.client.member.events import Answered
from kohort.types import ErrorCode, MemberId
from tests.client.tracing import Player
from tests.client.translating import refusal_of
from tests.coordinator.tracing import Stanza

SEEKS = "seeks the coordinator"
REBALANCES = "what it held is revoked; the same member joins"
PASSING = (
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

JOINING = ["subscribe t1", "poll", "answer find b1", "answer join MEMBER_ID_REQUIRED member=m2"]
BEFORE = {
    "find": ["subscribe t1", "poll"],
    "join": JOINING,
    "sync": [*JOINING, "answer join gen=1 member=m2 leader=m1"],
    "heartbeat": ["given t1:0", "advance 3s"],
    "commit": ["given t1:0", "commit 1 t1:0=5"],
    "fetch": ["given t1:0", "committed 1 t1:0"],
    "leave": ["given t1:0", "close", "returned"],
}
OTHERWISE = {
    "find": "fails with BrokerRefused(*)",
    "join": "fails with BrokerRefused(*)",
    "sync": "fails with BrokerRefused(*)",
    "heartbeat": "later heartbeat again",
    "commit": "answers BrokerRefused(*)",
    "fetch": "answers BrokerRefused(*)",
    "leave": "ended",
}
PARTICULAR: dict[str, dict[str, str]] = {
    "find": {
        PASSING: f"later {SEEKS}",
        NOT_THERE: f"later {SEEKS}",
        WITH_ADVICE: "fails with GroupRefused(*)",
    },
    "join": {
        "COORDINATOR_LOAD_IN_PROGRESS": "later the same member joins",
        "UNKNOWN_MEMBER_ID": "a new member joins",
        # Said again to one who has an id: a broken coordinator, that is not to be raced with.
        "MEMBER_ID_REQUIRED": "later the same member joins",
        "REBALANCE_IN_PROGRESS": "the same member joins",
        NOT_THERE: f"{SEEKS}; later the same member joins",
        "FENCED_INSTANCE_ID": "fails with Fenced",
        WITH_ADVICE: "fails with GroupRefused(*)",
    },
    "sync": {
        "REBALANCE_IN_PROGRESS": "the same member joins",
        "ILLEGAL_GENERATION": "the same member joins",
        "UNKNOWN_MEMBER_ID": "a new member joins",
        NOT_THERE: f"{SEEKS}; later the same member joins",
        "FENCED_INSTANCE_ID": "fails with Fenced",
        WITH_ADVICE: "fails with GroupRefused(*)",
    },
    "heartbeat": {
        "REBALANCE_IN_PROGRESS": REBALANCES,
        "ILLEGAL_GENERATION": "what it held is lost; the same member joins",
        "UNKNOWN_MEMBER_ID": "what it held is lost; a new member joins",
        # And only because the program polls on.
        "FENCED_INSTANCE_ID": "fails with Fenced; what it held is lost; a new member joins",
        NOT_THERE: f"{SEEKS}; later heartbeat again",
    },
    "commit": {
        "COORDINATOR_LOAD_IN_PROGRESS UNKNOWN_TOPIC_OR_PARTITION": "later commit again",
        f"{NOT_THERE} REQUEST_TIMED_OUT": f"{SEEKS}; later commit again",
        "REBALANCE_IN_PROGRESS": f"answers RebalanceUnderWay; {REBALANCES}",
        "ILLEGAL_GENERATION": ("answers CommitFailed; what it held is lost; the same member joins"),
        "UNKNOWN_MEMBER_ID": "answers CommitFailed; what it held is lost; a new member joins",
        "FENCED_INSTANCE_ID": (
            "fails with Fenced; answers Fenced; what it held is lost; a new member joins"
        ),
        WITH_ADVICE: "answers GroupRefused(*)",
    },
    "fetch": {
        PASSING: "later fetch again",
        NOT_THERE: f"{SEEKS}; later fetch again",
        WITH_ADVICE: "answers GroupRefused(*)",
    },
    "leave": {},
}


@pytest.mark.parametrize("kind", BEFORE)
def test_every_error_has_its_fate(kind: str) -> None:
    expected = _spread(PARTICULAR[kind], OTHERWISE[kind])

    found = {error.name: fate(kind, error) for error in ErrorCode if error}

    assert found == expected


@pytest.mark.parametrize("kind", BEFORE)
def test_an_error_that_only_a_newer_broker_knows_is_like_any_other(kind: str) -> None:
    code_of_tomorrow = 9_999
    assert code_of_tomorrow not in {int(error) for error in ErrorCode}

    assert fate(kind, ErrorCode.UNKNOWN_SERVER_ERROR, code_of_tomorrow) == OTHERWISE[kind]


def fate(kind: str, error: ErrorCode, code: int | None = None) -> str:
    """What follows from this answer if the program polls on, in a few words."""
    player = Player()

    def happens(line: str) -> list[str]:
        return _in_words(player.perform(Stanza([line], [])), error)

    for line in BEFORE[kind]:
        happens(line)
    asked = list(player.requests.values())[-1]
    refusal = refusal_of(asked.body, error if code is None else code, MemberId("m2"))
    player.said = []
    player.feed(Answered(number=asked.number, body=refusal))
    words = _in_words(player.said, error)
    if kind in ("heartbeat", "commit"):
        gone = [each for each in happens("poll") if each.startswith("what it held")]
        words += gone + (happens("returned") if gone else [])
    if SEEKS in words:
        happens("answer find b1")
    words += [f"later {each}" for each in happens("advance +100")]
    return "; ".join(words)


def _in_words(said: list[str], error: ErrorCode) -> list[str]:
    spelled = [_spelled(line.replace(error.name, "*")) for line in said]
    return [each for each in spelled if each]


def _spelled(line: str) -> str:
    verb, _, rest = line.partition(" ")
    match verb:
        case "failed":
            return f"fails with {rest}"
        case "committed" | "committed-told":
            return f"answers {rest.removeprefix('1 ')}"
        case "call":
            return f"what it held is {rest.partition(' ')[0]}"
        case "send" if rest.startswith("find"):
            return SEEKS
        case "send" if rest.startswith("join"):
            return "the same member joins" if " m2 " in rest else "a new member joins"
        case "send":
            return f"{rest.partition('#')[0]} again"
        case "ended":
            return verb
        case _:
            return ""


def _spread(particular: Mapping[str, str], otherwise: str) -> dict[str, str]:
    table = {error.name: otherwise for error in ErrorCode if error}
    for names, each in particular.items():
        unknown = set(names.split()) - set(table)
        assert not unknown, f"there is no {unknown}"
        table |= dict.fromkeys(names.split(), each)
    return table
