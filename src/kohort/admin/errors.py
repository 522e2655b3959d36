"""What may go wrong when a cluster is asked or changed: each error is one sentence for people."""

from typing import Final

from kohort.types import ErrorCode


class AdminError(Exception):
    """Something that whoever asked should read; `str` of it is one sentence."""


class WrongWish(AdminError):
    """What was asked for makes no sense, whatever the cluster says to it."""


class ClusterUnreachable(AdminError):
    """No broker could be reached, or none answered in time."""


class UnsupportedCluster(AdminError):
    """A broker does not speak what is needed."""


class NoSuchGroup(AdminError):
    """There is no group of that name."""


class NoSuchTopic(AdminError):
    """There is no topic of that name, or it has no such partition."""


class NoLeader(AdminError):
    """No broker leads the partition now, so nobody can be asked about it."""


class NoSuchMember(AdminError):
    """The group has no such member."""


class GroupNotEmpty(AdminError):
    """The group has members, and what was asked for needs it to have none."""


class TopicInUse(AdminError):
    """A member of the group reads the topic."""


class TopicExists(AdminError):
    """There is a topic of that name already."""


class NotAllowed(AdminError):
    """The cluster knows who asks, and refuses it."""


class NoHistory(AdminError):
    """The cluster keeps no record of what happened to its groups."""


class Refused(AdminError):
    """Any other refusal; names the error as Kafka does."""


_KINDS: Final[dict[int, tuple[type[AdminError], str]]] = {
    ErrorCode.GROUP_ID_NOT_FOUND: (NoSuchGroup, "there is no such group"),
    ErrorCode.NON_EMPTY_GROUP: (GroupNotEmpty, "the group has members"),
    ErrorCode.UNKNOWN_MEMBER_ID: (NoSuchMember, "the group has no such member"),
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (TopicInUse, "a member of the group reads this topic"),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (NoSuchTopic, "there is no such topic or partition"),
    ErrorCode.UNKNOWN_TOPIC_ID: (NoSuchTopic, "there is no such topic"),
    ErrorCode.LEADER_NOT_AVAILABLE: (NoLeader, "no broker leads this partition now"),
    ErrorCode.TOPIC_ALREADY_EXISTS: (TopicExists, "there is a topic of that name already"),
    ErrorCode.GROUP_AUTHORIZATION_FAILED: (NotAllowed, "the cluster does not allow it"),
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: (NotAllowed, "the cluster does not allow it"),
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: (NotAllowed, "the cluster does not allow it"),
    ErrorCode.POLICY_VIOLATION: (NotAllowed, "a policy of the cluster forbids it"),
    ErrorCode.TOPIC_DELETION_DISABLED: (NotAllowed, "the cluster deletes no topics"),
    ErrorCode.INVALID_GROUP_ID: (WrongWish, "this cannot be the name of a group"),
    ErrorCode.INVALID_TOPIC_EXCEPTION: (WrongWish, "this cannot be the name of a topic"),
    ErrorCode.INVALID_PARTITIONS: (WrongWish, "it cannot have this number of partitions"),
    ErrorCode.INVALID_REPLICATION_FACTOR: (WrongWish, "there are not that many brokers"),
    ErrorCode.INVALID_CONFIG: (WrongWish, "a setting is not valid"),
}


def refusal(code: int, what: str, detail: str | None = None) -> AdminError:
    """The error for a code that a broker gave, about `what`: "group 'a' cannot be deleted".

    `detail` is what the broker itself said to it, where it said anything.
    """
    kind, reason = _KINDS.get(code, (Refused, name_of(code)))
    return kind(f"{what}: {detail.rstrip('.') if detail else reason}")


def name_of(code: int) -> str:
    """As Kafka calls it; a code from a newer broker has only its number."""
    try:
        return ErrorCode(code).name
    except ValueError:
        return f"error {code}"
