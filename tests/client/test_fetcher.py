"""The fetcher: requests, buffering and responses."""

import pytest

from kohort.client.errors import BrokerResponseError, CorruptRecordError, InvalidOffsetError
from kohort.client.fetch.completed_fetch import FetchPosition
from kohort.client.fetch.subscription_state import FetchState as PartitionStage
from kohort.client.member.member_events import RequestFailure
from kohort.types import ZERO_UUID, ErrorCode, Offset, Topic
from kohort.wire.api.k01_fetch import FetchRequest, FetchResponse
from kohort.wire.api.k02_list_offsets import ListOffsetsRequest
from kohort.wire.api.k03_metadata import MetadataRequest
from kohort.wire.api.k23_offset_for_leader_epoch import OffsetForLeaderEpochRequest
from tests.client.core_driver import (
    ORDERS,
    ORDERS_ID,
    CoreDriver,
    fetched,
    metadata,
    partition,
    records,
)


def test_each_leader_gets_a_fetch_of_its_partitions() -> None:
    driver = CoreDriver({0: 1, 1: 2, 2: 1})

    assert driver.fetching() == {1: {0: 0, 2: 0}, 2: {1: 0}}


def test_a_fetch_is_sessionless_and_uses_topic_ids() -> None:
    (request,) = CoreDriver({0: 1}, fetch_max_wait_ms=70, fetch_min_bytes=9).in_flight(FetchRequest)

    body = request.body
    assert isinstance(body, FetchRequest)
    assert (body.session_id, body.session_epoch) == (0, -1)
    assert (body.max_wait_ms, body.min_bytes, body.max_bytes) == (70, 9, 52_428_800)
    assert body.topics[0].topic_id == ORDERS_ID
    assert request.version_max is None


def test_a_topic_without_an_id_limits_the_fetch_version() -> None:
    driver = CoreDriver({0: 1})
    driver.respond(FetchRequest, fetched({0: b""}))
    driver.core.metadata.update(metadata({0: 1}, topic_id=ZERO_UUID), driver.now)
    driver.respond(FetchRequest, FetchResponse())

    assert [each.version_max for each in driver.in_flight(FetchRequest)] == [12]


def test_one_fetch_is_buffered_ahead() -> None:
    driver = CoreDriver({0: 1})

    driver.respond(FetchRequest, fetched({0: records(0, 5)}))
    assert driver.fetching() == {1: {0: 5}}
    driver.respond(FetchRequest, fetched({0: records(5, 3)}))
    assert driver.fetching() == {}
    driver.read(0)
    assert driver.fetching() == {1: {0: 8}}


def test_while_one_partition_is_full_fetches_do_not_wait() -> None:
    driver = CoreDriver({0: 1, 1: 1}, fetch_max_wait_ms=100)
    driver.respond(FetchRequest, fetched({0: records(0), 1: b""}))
    driver.respond(FetchRequest, fetched({0: records(1), 1: b""}))

    (request,) = driver.in_flight(FetchRequest)
    assert driver.fetching() == {1: {1: 0}}
    assert isinstance(request.body, FetchRequest)
    assert request.body.max_wait_ms == 0


def test_a_broker_without_new_records_is_polled_less_often() -> None:
    driver = CoreDriver({0: 1, 1: 1}, fetch_max_wait_ms=100)
    driver.respond(FetchRequest, fetched({0: records(0), 1: b""}))
    driver.respond(FetchRequest, fetched({0: records(1), 1: b""}))
    driver.respond(FetchRequest, fetched({1: b""}))

    assert driver.fetching() == {}
    assert driver.core.deadline() == driver.now + 100
    driver.advance(100)
    assert driver.fetching() == {1: {1: 0}}


def test_nothing_is_fetched_above_fetch_max_bytes() -> None:
    driver = CoreDriver({0: 1, 1: 1}, fetch_max_bytes=100)
    driver.respond(FetchRequest, fetched({0: records(0, 20), 1: b""}))

    assert driver.fetching() == {}
    driver.read(0)
    assert driver.fetching() == {1: {1: 0, 0: 20}}


def test_a_partition_with_records_is_requested_last() -> None:
    driver = CoreDriver({0: 1, 1: 1, 2: 1})
    driver.respond(FetchRequest, fetched({0: records(0), 1: b"", 2: b""}))

    (request,) = driver.in_flight(FetchRequest)
    assert isinstance(request.body, FetchRequest)
    assert [each.partition for each in request.body.topics[0].partitions] == [1, 2, 0]


def test_paused_and_revoking_partitions_are_not_fetched() -> None:
    driver = CoreDriver({0: 1, 1: 1, 2: 1})
    driver.state(0).is_paused = True
    driver.state(1).is_pending_revocation = True
    driver.respond(FetchRequest, fetched({0: b"", 1: b"", 2: b""}))

    assert driver.fetching() == {1: {2: 0}}


def test_an_outdated_fetch_response_is_dropped() -> None:
    driver = CoreDriver({0: 1, 1: 1})
    driver.core.subscription.seek(driver.state(0), FetchPosition(offset=Offset(40)))
    driver.core.subscription.remove([partition(1)])

    driver.respond(FetchRequest, fetched({0: records(0), 1: records(0)}))

    assert not driver.state(0).fetches
    assert driver.fetching() == {1: {0: 40}}


def test_a_partition_that_moved_while_it_was_fetched_is_not_fetched_twice() -> None:
    driver = CoreDriver({0: 1, 1: 2})
    driver.core.metadata.update(metadata({0: 2, 1: 2}), driver.now)
    driver.respond(FetchRequest, fetched({1: b""}), broker=2)

    assert driver.fetching() == {1: {0: 0}, 2: {1: 0}}


def test_nothing_is_fetched_behind_a_corrupt_batch() -> None:
    driver = CoreDriver({0: 1})
    driver.respond(FetchRequest, fetched({0: b"\0" * 80}))

    assert driver.fetching() == {}
    with pytest.raises(CorruptRecordError):
        driver.state(0).fetches[0].take(1)


@pytest.mark.parametrize("loss", list(RequestFailure))
def test_a_failed_fetch_is_retried_with_backoff(loss: RequestFailure) -> None:
    driver = CoreDriver({0: 1}, retry_backoff_ms=100)
    driver.advance(1_000)
    driver.respond(FetchRequest, loss)

    assert driver.fetching() == {}
    assert driver.in_flight(MetadataRequest)
    driver.advance(100)
    assert driver.fetching() == {1: {0: 0}}


def test_a_top_level_fetch_error_is_retried_with_backoff() -> None:
    driver = CoreDriver({0: 1}, retry_backoff_ms=100)
    driver.respond(FetchRequest, FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))

    assert driver.fetching() == {}
    driver.advance(100)
    assert driver.fetching() == {1: {0: 0}}


def test_an_out_of_range_offset_is_reset() -> None:
    driver = CoreDriver({0: 1}, auto_offset_reset="earliest")
    driver.respond(FetchRequest, fetched({0: b""}, error_code=ErrorCode.OFFSET_OUT_OF_RANGE))

    assert driver.state(0).fetch_state is PartitionStage.AWAIT_RESET
    (request,) = driver.in_flight(ListOffsetsRequest)
    assert isinstance(request.body, ListOffsetsRequest)
    assert request.body.topics[0].partitions[0].timestamp == -2


def test_buffered_records_are_read_before_an_out_of_range_reset() -> None:
    driver = CoreDriver({0: 1}, auto_offset_reset="none")
    driver.respond(FetchRequest, fetched({0: records(0)}))
    out_of_range = fetched({0: b""}, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)

    driver.respond(FetchRequest, out_of_range)
    assert driver.core.take_error() is None
    driver.read(0)
    driver.advance(1_000)
    driver.respond(FetchRequest, out_of_range)
    assert isinstance(driver.core.take_error(), InvalidOffsetError)


def test_buffered_records_are_read_before_a_corrupt_batch_is_reported() -> None:
    driver = CoreDriver({0: 1})
    driver.respond(FetchRequest, fetched({0: records(0, 3)}))
    corrupt = fetched({0: b""}, error_code=ErrorCode.CORRUPT_MESSAGE)

    driver.respond(FetchRequest, corrupt)
    assert driver.core.take_error() is None
    assert driver.state(0).fetches
    driver.core.subscription.mark_delivered(driver.state(0), driver.state(0).fetches[0].end)
    driver.read(0)
    driver.advance(1_000)
    driver.respond(FetchRequest, corrupt)

    error = driver.core.take_error()
    assert isinstance(error, CorruptRecordError)
    assert (error.partition, error.offset, error.next_offset) == (partition(0), 3, 4)


def test_a_fetch_error_is_raised_until_the_application_seeks() -> None:
    driver = CoreDriver({0: 1})
    driver.respond(FetchRequest, fetched({0: b""}, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))

    assert isinstance(driver.core.take_error(), BrokerResponseError)
    assert isinstance(driver.core.take_error(), BrokerResponseError)
    driver.core.subscription.remove([partition(0)])
    assert driver.core.take_error() is None


def test_the_preferred_replica_is_used_until_metadata_max_age() -> None:
    driver = CoreDriver({0: 1, 1: 2}, metadata_max_age_ms=1_000)
    driver.respond(FetchRequest, fetched({0: b""}, preferred_read_replica=2), broker=1)
    driver.respond(FetchRequest, fetched({1: b""}), broker=2)

    assert driver.fetching() == {2: {1: 0, 0: 0}}
    driver.advance(1_000)
    driver.respond(FetchRequest, fetched({0: b"", 1: b""}), broker=2)
    assert driver.fetching() == {1: {0: 0}, 2: {1: 0}}


def test_a_position_is_validated_before_fetching_from_a_new_leader() -> None:
    driver = CoreDriver({0: 1})
    driver.respond(FetchRequest, fetched({0: records(0, 3)}))
    driver.core.subscription.mark_delivered(
        driver.state(0), FetchPosition(offset=Offset(2), leader_epoch=0)
    )
    driver.core.metadata.update(metadata({0: 1}, epoch=1), driver.now)
    driver.advance()

    assert driver.state(0).fetch_state is PartitionStage.AWAIT_VALIDATION
    assert not driver.state(0).fetches
    assert driver.in_flight(OffsetForLeaderEpochRequest)


def test_metadata_is_requested_while_a_leader_is_unknown() -> None:
    driver = CoreDriver({0: 1})
    driver.core.subscription.add([partition(7)])
    driver.core.subscription.seek(driver.state(7), FetchPosition(offset=Offset(0)))
    driver.advance(1_000)

    assert driver.in_flight(MetadataRequest)
    assert driver.core.metadata.find_leader(partition(7)) is None
    assert driver.core.metadata.partition_counts(frozenset((ORDERS, Topic("no")))) == {ORDERS: 1}
