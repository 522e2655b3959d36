"""What a request names: groups, members and topics, by API key. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kohort.node.repeated_commits import RepeatedCommit
from kohort.node.topics import Topics
from kohort.types import Topic, Uuid

Names = Callable[[Any], Iterable[str | None]]

_GROUP_KEY_TYPE: Final = 0
"""The type of a group's key in FindCoordinator."""

_TOPIC_RESOURCE: Final = 2
"""The type of a topic in requests about settings."""


def plain_body(body: Any) -> Any:
    """The request message, also of a commit that took the fast path. Its offsets may be older."""
    return body.template.body if isinstance(body, RepeatedCommit) else body


def find_groups(api_key: int, body: Any) -> set[str | None]:
    return set(GROUPS[api_key](body))


def find_members(api_key: int, body: Any) -> set[str | None]:
    """Member ids and group instance ids."""
    return set(MEMBERS[api_key](body))


def find_topics(api_key: int, body: Any, topics: Topics) -> set[str | None] | None:
    """Topic names; None if the request is for all topics."""
    items = TOPICS[api_key](body)
    if items is None:
        return None
    return {_topic_name(each, topics) for each in items}


def _own_group(body: Any) -> Iterable[str]:
    return (body.group_id,)


def _own_member(body: Any) -> Iterable[str | None]:
    return (body.member_id, body.group_instance_id)


def _leaving_members(body: Any) -> Iterable[str | None]:
    yield body.member_id
    for each in body.members:
        yield each.member_id
        yield each.group_instance_id


def _coordinator_keys(body: Any) -> Iterable[str]:
    return (body.key, *body.coordinator_keys) if body.key_type == _GROUP_KEY_TYPE else ()


def _topic_name(item: Any, topics: Topics) -> str | None:
    """Of a topic in a request: a name, or a struct with a name, an id, or both."""
    if isinstance(item, str):
        return item
    name: Topic | None = getattr(item, "name", None) or getattr(item, "topic", None)
    topic_id: Uuid | None = getattr(item, "topic_id", None)
    if name or topic_id is None:
        return name
    found = topics.find_by_id(topic_id)
    return None if found is None else found.name


def _topic_resources(body: Any) -> list[str]:
    return [each.resource_name for each in body.resources if each.resource_type == _TOPIC_RESOURCE]


GROUPS: Final[Mapping[int, Names]] = {
    8: _own_group,
    9: lambda body: (body.group_id, *(each.group_id for each in body.groups)),
    10: _coordinator_keys,
    11: _own_group,
    12: _own_group,
    13: _own_group,
    14: _own_group,
    15: lambda body: body.groups,
    42: lambda body: body.groups_names,
    47: _own_group,
}
"""The APIs whose requests name groups."""

MEMBERS: Final[Mapping[int, Names]] = {
    8: _own_member,
    9: lambda body: [each.member_id for each in body.groups],
    11: _own_member,
    12: _own_member,
    13: _leaving_members,
    14: _own_member,
}
"""The APIs whose requests name members."""

TOPICS: Final[Mapping[int, Callable[[Any], Iterable[Any] | None]]] = {
    0: lambda body: body.topic_data,
    1: lambda body: body.topics,
    2: lambda body: body.topics,
    3: lambda body: body.topics,
    8: lambda body: body.topics,
    9: lambda body: [
        topic
        for topics in (body.topics, *(each.topics for each in body.groups))
        for topic in topics or ()
    ],
    19: lambda body: body.topics,
    20: lambda body: (*body.topics, *body.topic_names),
    21: lambda body: body.topics,
    23: lambda body: body.topics,
    32: _topic_resources,
    35: lambda body: body.topics,
    37: lambda body: body.topics,
    44: _topic_resources,
    47: lambda body: body.topics,
    75: lambda body: body.topics,
}
"""The APIs whose requests name topics."""
