"""What a broker's error codes mean to a program: what to try again, and what to tell."""

from typing import Final

from kohort.client.errors import BrokerRefused, ConsumerError, GroupRefused
from kohort.types import ErrorCode, GroupId

RETRIABLE: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.SHARE_SESSION_LIMIT_REACHED,
    }
)
"""What Kafka's own client takes for passing trouble, whoever says it."""

NOT_THERE: Final = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
"""The coordinator is somewhere else, or nowhere yet: look for it again."""

_ADVICE: Final = {
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
        "its members have no assignor in common with this one; give all of them one in "
        "partition.assignment.strategy"
    ),
    ErrorCode.INVALID_SESSION_TIMEOUT: (
        "session.timeout.ms must lie between the broker's group.min.session.timeout.ms and "
        "group.max.session.timeout.ms"
    ),
    ErrorCode.INVALID_GROUP_ID: "group.id must not be empty",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "ask for permission to read the group",
    ErrorCode.GROUP_MAX_SIZE_REACHED: (
        "it has as many members as the broker's group.max.size allows; stop one of them"
    ),
    ErrorCode.UNSUPPORTED_VERSION: "the broker is too old for group.instance.id; do without it",
}


def named(code: int) -> ErrorCode:
    """A code from a newer broker says no more to us than that something is wrong."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def refusal(group_id: GroupId, code: int, what: str) -> ConsumerError:
    advice = _ADVICE.get(named(code))
    if advice is not None:
        return GroupRefused(group_id, named(code), advice)
    return BrokerRefused(named(code), f"group {group_id!r}, {what}")
