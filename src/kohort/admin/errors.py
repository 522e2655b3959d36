"""Errors of admin calls. `str` of each is one sentence for the user."""

from typing import Final

from kohort.types import ErrorCode


class AdminError(Exception):
    """Base class of all errors of this package."""


class InvalidRequest(AdminError):
    """The arguments are invalid, whatever the state of the cluster."""


class ClusterUnreachable(AdminError):
    """No broker could be reached, or none responded in time."""


class UnsupportedCluster(AdminError):
    """A broker does not support a required API or version."""


class NoSuchGroup(AdminError):
    """The group does not exist."""


class NoSuchTopic(AdminError):
    """The topic or the partition does not exist."""


class NoLeader(AdminError):
    """The partition has no leader now."""


class NoSuchMember(AdminError):
    """The group has no such member."""


class GroupNotEmpty(AdminError):
    """The operation requires a group without members."""


class TopicInUse(AdminError):
    """A member of the group subscribes to the topic."""


class TopicExists(AdminError):
    """The topic exists already."""


class NotAllowed(AdminError):
    """The cluster denies the operation: authorization or policy."""


class NoHistory(AdminError):
    """The cluster has no events of its groups."""


class BrokerError(AdminError):
    """Any other error code, with Kafka's name of it."""


_BY_CODE: Final[dict[int, tuple[type[AdminError], str]]] = {
    ErrorCode.GROUP_ID_NOT_FOUND: (NoSuchGroup, "the group does not exist"),
    ErrorCode.NON_EMPTY_GROUP: (GroupNotEmpty, "the group has members"),
    ErrorCode.UNKNOWN_MEMBER_ID: (NoSuchMember, "the group does not have this member"),
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (
        TopicInUse,
        "a member of the group subscribes to this topic",
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (NoSuchTopic, "the topic or partition does not exist"),
    ErrorCode.UNKNOWN_TOPIC_ID: (NoSuchTopic, "the topic does not exist"),
    ErrorCode.LEADER_NOT_AVAILABLE: (NoLeader, "the partition has no leader now"),
    ErrorCode.TOPIC_ALREADY_EXISTS: (TopicExists, "the topic exists already"),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: (NotAllowed, "not authorized"),
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: (NotAllowed, "not authorized"),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (NotAllowed, "not authorized"),
    ErrorCode.POLICY_VIOLATION: (NotAllowed, "a policy of the cluster denies it"),
    ErrorCode.TOPIC_DELETION_DISABLED: (NotAllowed, "topic deletion is disabled on this cluster"),
    ErrorCode.INVALID_GROUP_ID: (InvalidRequest, "invalid group id"),
    ErrorCode.INVALID_TOPIC_EXCEPTION: (InvalidRequest, "invalid topic name"),
    ErrorCode.INVALID_PARTITIONS: (InvalidRequest, "invalid number of partitions"),
    ErrorCode.INVALID_REPLICATION_FACTOR: (
        InvalidRequest,
        "more replicas than brokers",
    ),
    ErrorCode.INVALID_CONFIG: (InvalidRequest, "invalid configuration value"),
}


def error_from_code(code: int, what: str, detail: str | None = None) -> AdminError:
    """The exception for an error code. `what` is the failed operation: "cannot delete group 'a'".

    `detail` is the broker's own error message, if it sent one.
    """
    kind, reason = _BY_CODE.get(code, (BrokerError, error_name(code)))
    return kind(f"{what}: {detail.rstrip('.') if detail else reason}")


def error_name(code: int) -> str:
    """Kafka's name of the code; the number if it is unknown."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
