"""SubscriptionState: types, positions, processed and committed offsets."""

import re

import pytest

from kohort.client.errors import IllegalStateError, InvalidOffsetError
from kohort.client.fetch.completed_fetch import FetchPosition
from kohort.client.fetch.subscription_state import (
    FetchState,
    SubscriptionState,
    SubscriptionType,
    TopicPartitionState,
)
from kohort.client.member.member_events import OffsetAndMetadata
from kohort.types import Offset, Topic
from tests.client.core_driver import partition
from tests.client.fetched_batches import batch, fetch


def position(offset: int) -> FetchPosition:
    return FetchPosition(offset=Offset(offset), leader_epoch=3)


def committed(offset: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset=Offset(offset), leader_epoch=3)


def reading(offset: int = 0) -> tuple[SubscriptionState, TopicPartitionState]:
    subscription = SubscriptionState()
    subscription.set_type(SubscriptionType.USER_ASSIGNED)
    subscription.add([partition(0)])
    state = subscription.get(partition(0))
    subscription.seek(state, position(offset))
    return subscription, state


def test_delivered_records_become_processed() -> None:
    subscription, state = reading()
    subscription.mark_delivered(state, position(5))

    assert subscription.consumed_positions() == {partition(0): committed(5)}
    assert subscription.processed_positions() == {partition(0): committed(0)}
    subscription.mark_all_processed()
    assert subscription.processed_positions() == {partition(0): committed(5)}


def test_committed_positions_are_not_committed_again() -> None:
    subscription, state = reading()
    subscription.mark_delivered(state, position(5))
    subscription.mark_all_processed()
    subscription.mark_committed({partition(0): committed(5), partition(9): committed(1)})

    assert subscription.processed_positions() == {}


def test_an_explicit_commit_marks_records_as_processed() -> None:
    subscription, state = reading()
    subscription.mark_delivered(state, position(5))

    subscription.mark_processed({partition(0): committed(3)})
    assert subscription.processed_positions() == {partition(0): committed(3)}
    subscription.mark_processed({partition(0): committed(1), partition(9): committed(1)})
    assert subscription.processed_positions() == {partition(0): committed(3)}
    subscription.mark_processed({partition(0): committed(99)})
    assert subscription.processed_positions() == {partition(0): committed(3)}


def test_seek_drops_buffered_and_delivered_records() -> None:
    subscription, state = reading()
    position_version = state.position_version
    state.fetches.append(fetch(batch([b"a"])))
    subscription.mark_delivered(state, position(1))
    subscription.seek(state, position(40))
    subscription.mark_all_processed()

    assert not state.fetches
    assert not subscription.is_current(state, position_version)
    assert subscription.processed_positions() == {partition(0): committed(40)}


def test_rewind_keeps_the_processed_position() -> None:
    subscription, state = reading(2)
    subscription.rewind(state, position(4))

    assert state.fetch_position == position(4)
    assert subscription.processed_positions() == {partition(0): committed(2)}
    subscription.mark_all_processed()
    assert subscription.processed_positions() == {partition(0): committed(4)}


def test_a_partition_without_a_position_commits_nothing() -> None:
    subscription, state = reading()
    subscription.await_committed(state)

    assert state.fetch_state is FetchState.INITIALIZING
    assert subscription.consumed_positions() == subscription.processed_positions() == {}


def test_an_error_stays_until_seek_or_revocation() -> None:
    subscription, state = reading()
    fault = InvalidOffsetError("gone")

    subscription.fail(state, fault)
    assert subscription.error is fault
    subscription.seek(state, position(1))
    assert subscription.error is None
    subscription.fail(state, fault)
    subscription.remove([partition(0)])
    assert subscription.error is None


def test_a_reassigned_partition_has_a_new_state() -> None:
    subscription, state = reading()
    subscription.remove([partition(0)])
    subscription.add([partition(0)])

    assert not subscription.is_current(state, state.position_version)
    subscription.add([partition(0)])
    assert subscription.get(partition(0)).fetch_state is FetchState.INITIALIZING


def test_a_pattern_matches_at_the_start_and_skips_internal_topics() -> None:
    subscription = SubscriptionState()
    subscription.pattern = re.compile("orders|__consumer")
    topics = {
        Topic("orders"): False,
        Topic("orders-2"): False,
        Topic("my-orders"): False,
        Topic("__consumer_offsets"): True,
    }

    assert subscription.match(topics, exclude_internal=True) == {"orders", "orders-2"}
    assert subscription.match(topics, exclude_internal=False) == {
        "orders",
        "orders-2",
        "__consumer_offsets",
    }


def test_subscription_types_cannot_be_combined() -> None:
    subscription, _ = reading()

    subscription.set_type(SubscriptionType.USER_ASSIGNED)
    with pytest.raises(IllegalStateError, match="already subscribed to partitions"):
        subscription.set_type(SubscriptionType.AUTO_TOPICS)
    subscription.clear()
    subscription.set_type(SubscriptionType.AUTO_TOPICS)
    with pytest.raises(IllegalStateError, match="not assigned"):
        subscription.get(partition(0))
