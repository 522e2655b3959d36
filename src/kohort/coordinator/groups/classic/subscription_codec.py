"""Reads the topics in the metadata of consumers: the one embedded format a classic group knows."""

from collections.abc import Iterable
from typing import Final

from kohort.types import Topic
from kohort.wire.consumer_protocol import Subscription
from kohort.wire.errors import MalformedMessage
from kohort.wire.message_codec import decoder

_VERSION_SIZE: Final = 2


def find_subscribed_topics(metadata: Iterable[bytes]) -> frozenset[Topic] | None:
    """Return the topics of all these subscriptions, or None if one of them cannot be read."""
    # Every version begins with the fields of version 0, so later fields do not matter.
    read = decoder(Subscription, 0)
    topics: set[Topic] = set()
    try:
        # Most members of a group send the same bytes.
        for each in set(metadata):
            subscription, _ = read(each, _VERSION_SIZE)
            topics.update(subscription.topics)
    except MalformedMessage:
        return None
    return frozenset(topics)
