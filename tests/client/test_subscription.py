"""What a program wants, what it was given and what it has done with."""

import re

import pytest

from kohort.client.errors import OffsetNotValid, WrongUse
from kohort.client.fetching.parcel import Place
from kohort.client.fetching.subscription import PartitionState, Stage, Subscription, Wish
from kohort.client.member.events import Position
from kohort.types import Offset, Topic
from tests.client.batches import batch, parcel
from tests.client.fetching import partition


def place(offset: int) -> Place:
    return Place(offset=Offset(offset), leader_epoch=3)


def position(offset: int) -> Position:
    return Position(offset=Offset(offset), leader_epoch=3)


def reading(offset: int = 0) -> tuple[Subscription, PartitionState]:
    subscription = Subscription()
    subscription.choose(Wish.PARTITIONS)
    subscription.add([partition(0)])
    state = subscription.get(partition(0))
    subscription.stand(state, place(offset))
    return subscription, state


def test_what_was_given_is_done_with_when_the_program_says_so() -> None:
    subscription, state = reading()
    subscription.give(state, place(5))

    assert subscription.places() == {partition(0): position(5)}
    assert subscription.done_with() == {partition(0): position(0)}
    subscription.finish()
    assert subscription.done_with() == {partition(0): position(5)}


def test_what_is_kept_need_not_be_committed_again() -> None:
    subscription, state = reading()
    subscription.give(state, place(5))
    subscription.finish()
    subscription.keep({partition(0): position(5), partition(9): position(1)})

    assert subscription.done_with() == {}


def test_a_commit_of_the_program_says_how_far_it_has_done() -> None:
    subscription, state = reading()
    subscription.give(state, place(5))

    subscription.finish_at({partition(0): position(3)})
    assert subscription.done_with() == {partition(0): position(3)}
    subscription.finish_at({partition(0): position(1), partition(9): position(1)})
    assert subscription.done_with() == {partition(0): position(3)}
    subscription.finish_at({partition(0): position(99)})
    assert subscription.done_with() == {partition(0): position(3)}


def test_going_elsewhere_drops_what_was_buffered_and_given() -> None:
    subscription, state = reading()
    era = state.era
    state.parcels.append(parcel(batch([b"a"])))
    subscription.give(state, place(1))
    subscription.stand(state, place(40))
    subscription.finish()

    assert not state.parcels
    assert not subscription.is_current(state, era)
    assert subscription.done_with() == {partition(0): position(40)}


def test_going_back_to_what_was_not_given_keeps_what_was_done_with() -> None:
    subscription, state = reading(2)
    subscription.rewind(state, place(4))

    assert state.fetch_from == place(4)
    assert subscription.done_with() == {partition(0): position(2)}
    subscription.finish()
    assert subscription.done_with() == {partition(0): position(4)}


def test_a_partition_without_a_place_has_nothing_to_commit() -> None:
    subscription, state = reading()
    subscription.await_committed(state)

    assert state.stage is Stage.COMMITTED
    assert subscription.places() == subscription.done_with() == {}


def test_a_fault_is_told_until_the_partition_goes_or_is_sent_elsewhere() -> None:
    subscription, state = reading()
    fault = OffsetNotValid("gone")

    subscription.complain(state, fault)
    assert subscription.fault is fault
    subscription.stand(state, place(1))
    assert subscription.fault is None
    subscription.complain(state, fault)
    subscription.remove([partition(0)])
    assert subscription.fault is None


def test_a_partition_that_comes_again_is_another_one() -> None:
    subscription, state = reading()
    subscription.remove([partition(0)])
    subscription.add([partition(0)])

    assert not subscription.is_current(state, state.era)
    subscription.add([partition(0)])
    assert subscription.get(partition(0)).stage is Stage.COMMITTED


def test_a_pattern_matches_from_the_beginning_and_leaves_out_what_is_internal() -> None:
    subscription = Subscription()
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


def test_one_wish_at_a_time_is_enough() -> None:
    subscription, _ = reading()

    subscription.choose(Wish.PARTITIONS)
    with pytest.raises(WrongUse, match="already wants partitions"):
        subscription.choose(Wish.TOPICS)
    subscription.clear()
    subscription.choose(Wish.TOPICS)
    with pytest.raises(WrongUse, match="not assigned"):
        subscription.get(partition(0))
