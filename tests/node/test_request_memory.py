"""The memory of large requests: reservations, and connections that wait for one."""

import pytest

from kohort.node.request_memory import RequestMemory
from kohort.types import Topic
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k16_list_groups import ListGroupsRequest
from kohort.wire.envelope import encode_request
from tests.node.broker_harness import BrokerHarness
from tests.node.fake_transport import FakeTransport, RecordingLoop

KIBIBYTE = 1024


class Owner:
    def __init__(self) -> None:
        self.grants = 0

    def memory_reserved(self) -> None:
        self.grants += 1


def test_reservation_waits_until_another_is_released() -> None:
    memory = RequestMemory(100)
    first, second, third = Owner(), Owner(), Owner()

    is_reserved = [memory.reserve(owner, 60) for owner in (first, second, third)]
    memory.release(first)

    assert is_reserved == [True, False, False]
    assert (second.grants, third.grants) == (1, 0)
    assert memory.reserved_bytes == 60


def test_small_reservation_does_not_overtake_a_large_one() -> None:
    memory = RequestMemory(100)
    first, large, small = Owner(), Owner(), Owner()
    memory.reserve(first, 60)
    memory.reserve(large, 100)

    is_reserved = memory.reserve(small, 10)

    assert not is_reserved


def test_request_above_the_limit_is_received_alone() -> None:
    memory = RequestMemory(100)
    large, other = Owner(), Owner()

    assert memory.reserve(large, 500)
    assert not memory.reserve(other, 1)


def test_owner_that_gives_up_no_longer_waits() -> None:
    memory = RequestMemory(100)
    first, second, third = Owner(), Owner(), Owner()
    for owner in (first, second, third):
        memory.reserve(owner, 100)

    memory.release(second)
    memory.release(first)

    assert (second.grants, third.grants) == (0, 1)


@pytest.fixture
def loop(harness: BrokerHarness) -> RecordingLoop:
    loop = RecordingLoop(harness)
    loop.request_memory = RequestMemory(1024 * KIBIBYTE)
    return loop


def large_request() -> bytes:
    topics = tuple(
        MetadataRequestTopic(name=Topic(f"{'x' * 200}-{number}")) for number in range(4000)
    )
    body = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
    return encode_request(body, 9, 1, "c")


def test_large_request_is_not_read_until_its_memory_is_free(loop: RecordingLoop) -> None:
    first, second = FakeTransport(), FakeTransport()
    holder, waiter = (loop.connect(each, "127.0.0.1", 1) for each in (first, second))
    assert holder is not None
    assert waiter is not None
    frame = large_request()

    holder.feed(frame[: 300 * KIBIBYTE])
    waiter.feed(frame[: 300 * KIBIBYTE])
    was_read_from = second.is_read_from
    holder.feed(frame[300 * KIBIBYTE :])
    while loop.iterate([holder]):
        pass

    assert not was_read_from
    assert first.written
    assert second.is_read_from


def test_small_requests_never_wait_for_memory(loop: RecordingLoop) -> None:
    transport = FakeTransport()
    holder = loop.connect(FakeTransport(), "127.0.0.1", 1)
    small = loop.connect(transport, "127.0.0.1", 2)
    assert holder is not None
    assert small is not None
    holder.feed(large_request()[: 300 * KIBIBYTE])

    small.feed(encode_request(ListGroupsRequest(), 5, 1, "c"))
    loop.iterate([small])

    assert transport.written


def test_disconnected_client_gives_up_its_memory(loop: RecordingLoop) -> None:
    holder = loop.connect(FakeTransport(), "127.0.0.1", 1)
    assert holder is not None
    holder.feed(large_request()[: 300 * KIBIBYTE])
    reserved_bytes = loop.request_memory.reserved_bytes

    holder.lost()

    assert reserved_bytes > 800 * KIBIBYTE
    assert loop.request_memory.reserved_bytes == 0
