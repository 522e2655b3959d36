"""Which error codes of brokers are retriable, and which error the application gets for others."""

from typing import Final

from kohort.client.errors import BrokerResponseError, ConsumerError, GroupRejectedError
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
"""The RetriableExceptions of Kafka's client."""

COORDINATOR_MOVED: Final = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
"""Search the coordinator again."""

_ADVICE: Final = {
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: (
        "its members have no assignor in common with this one; set a common one in "
        "partition.assignment.strategy"
    ),
    ErrorCode.INVALID_SESSION_TIMEOUT: (
        "session.timeout.ms must be between the broker's group.min.session.timeout.ms and "
        "group.max.session.timeout.ms"
    ),
    ErrorCode.INVALID_GROUP_ID: "set a group.id that is not empty",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "this user needs the READ permission for the group",
    ErrorCode.GROUP_MAX_SIZE_REACHED: (
        "it has reached the broker's group.max.size; stop a member, or raise the limit"
    ),
    ErrorCode.UNSUPPORTED_VERSION: "the broker is too old for group.instance.id; remove it",
}


def error_code(code: int) -> ErrorCode:
    """Codes of newer brokers become UNKNOWN_SERVER_ERROR."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def group_error(group_id: GroupId, code: int, what: str) -> ConsumerError:
    advice = _ADVICE.get(error_code(code))
    if advice is not None:
        return GroupRejectedError(group_id, error_code(code), advice)
    return BrokerResponseError(error_code(code), f"group {group_id!r}: {what} failed")
