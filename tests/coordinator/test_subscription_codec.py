"""Topics are found in every version of a subscription."""

from typing import Any

import pytest

from kohort.coordinator.groups.classic.subscription_codec import find_subscribed_topics
from kohort.types import Partition, Topic
from kohort.wire.consumer_protocol import Subscription, TopicPartitions, encode_subscription
from tests.coordinator.test_record_codec import vectors


@pytest.mark.parametrize(("metadata", "version", "fields"), vectors("ConsumerProtocolSubscription"))
def test_topics_are_found_in_every_subscription_version(
    metadata: bytes, version: int, fields: dict[str, Any]
) -> None:
    assert version in range(4)
    assert find_subscribed_topics([metadata]) == frozenset(fields["topics"])


def test_topics_of_all_members_are_combined() -> None:
    one = encode_subscription(Subscription(topics=(Topic("t"), Topic("u"))))
    other = encode_subscription(Subscription(topics=(Topic("u"), Topic("v"))))

    assert find_subscribed_topics([one, other]) == {"t", "u", "v"}
    assert find_subscribed_topics([]) == frozenset()


def test_data_after_the_topics_is_ignored() -> None:
    owned = (TopicPartitions(topic=Topic("t"), partitions=(Partition(0),)),)
    whole = encode_subscription(Subscription(topics=(Topic("t"),), owned_partitions=owned))

    for metadata in (whole[:-9], b"\x7f\xff" + whole[2:], b"\xff\xff" + whole[2:], whole + b"more"):
        assert find_subscribed_topics([metadata]) == {"t"}


@pytest.mark.parametrize("metadata", [b"", b"\x00", b"\x00\x00\x00\x00\x00\x09", b"gibberish"])
def test_one_malformed_subscription_makes_the_topics_unknown(metadata: bytes) -> None:
    fine = encode_subscription(Subscription(topics=(Topic("t"),)))

    assert find_subscribed_topics([fine, metadata]) is None
