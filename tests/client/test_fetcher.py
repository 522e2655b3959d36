"""What is fetched next, from whom, and what becomes of the answers."""

import pytest

from kohort.client.errors import BadRecord, BrokerRefused, OffsetNotValid
from kohort.client.fetching.parcel import Place
from kohort.client.fetching.subscription import Stage as PartitionStage
from kohort.client.member.events import Loss
from kohort.types import ZERO_UUID, ErrorCode, Offset, Topic
from kohort.wire.api.k01_fetch import FetchRequest, FetchResponse
from kohort.wire.api.k02_list_offsets import ListOffsetsRequest
from kohort.wire.api.k03_metadata import MetadataRequest
from kohort.wire.api.k23_offset_for_leader_epoch import OffsetForLeaderEpochRequest
from tests.client.fetching import ORDERS, ORDERS_ID, Stage, fetched, metadata, partition, records


def test_each_leader_is_asked_for_its_own_partitions() -> None:
    stage = Stage({0: 1, 1: 2, 2: 1})

    assert stage.fetching() == {1: {0: 0, 2: 0}, 2: {1: 0}}


def test_a_fetch_stands_for_itself_and_names_topics_by_id() -> None:
    (request,) = Stage({0: 1}, fetch_max_wait_ms=70, fetch_min_bytes=9).asked(FetchRequest)

    body = request.body
    assert isinstance(body, FetchRequest)
    assert (body.session_id, body.session_epoch) == (0, -1)
    assert (body.max_wait_ms, body.min_bytes, body.max_bytes) == (70, 9, 52_428_800)
    assert body.topics[0].topic_id == ORDERS_ID
    assert request.version_max is None


def test_a_topic_without_an_id_is_named_in_the_last_version_that_can() -> None:
    stage = Stage({0: 1})
    stage.answer(FetchRequest, fetched({0: b""}))
    stage.agent.cluster.learn(metadata({0: 1}, topic_id=ZERO_UUID), stage.now)
    stage.answer(FetchRequest, FetchResponse())

    assert [each.version_max for each in stage.asked(FetchRequest)] == [12]


def test_one_parcel_is_fetched_ahead_of_the_one_that_is_read() -> None:
    stage = Stage({0: 1})

    stage.answer(FetchRequest, fetched({0: records(0, 5)}))
    assert stage.fetching() == {1: {0: 5}}
    stage.answer(FetchRequest, fetched({0: records(5, 3)}))
    assert stage.fetching() == {}
    stage.read(0)
    assert stage.fetching() == {1: {0: 8}}


def test_while_one_partition_is_full_the_others_are_asked_about_without_waiting() -> None:
    stage = Stage({0: 1, 1: 1}, fetch_max_wait_ms=100)
    stage.answer(FetchRequest, fetched({0: records(0), 1: b""}))
    stage.answer(FetchRequest, fetched({0: records(1), 1: b""}))

    (request,) = stage.asked(FetchRequest)
    assert stage.fetching() == {1: {1: 0}}
    assert isinstance(request.body, FetchRequest)
    assert request.body.max_wait_ms == 0


def test_a_broker_with_nothing_new_is_left_alone_for_a_while() -> None:
    stage = Stage({0: 1, 1: 1}, fetch_max_wait_ms=100)
    stage.answer(FetchRequest, fetched({0: records(0), 1: b""}))
    stage.answer(FetchRequest, fetched({0: records(1), 1: b""}))
    stage.answer(FetchRequest, fetched({1: b""}))

    assert stage.fetching() == {}
    assert stage.agent.deadline() == stage.now + 100
    stage.advance(100)
    assert stage.fetching() == {1: {1: 0}}


def test_nothing_is_fetched_while_too_much_is_held() -> None:
    stage = Stage({0: 1, 1: 1}, fetch_max_bytes=100)
    stage.answer(FetchRequest, fetched({0: records(0, 20), 1: b""}))

    assert stage.fetching() == {}
    stage.read(0)
    assert stage.fetching() == {1: {1: 0, 0: 20}}


def test_who_has_given_something_is_named_last() -> None:
    stage = Stage({0: 1, 1: 1, 2: 1})
    stage.answer(FetchRequest, fetched({0: records(0), 1: b"", 2: b""}))

    (request,) = stage.asked(FetchRequest)
    assert isinstance(request.body, FetchRequest)
    assert [each.partition for each in request.body.topics[0].partitions] == [1, 2, 0]


def test_paused_and_leaving_partitions_are_not_fetched() -> None:
    stage = Stage({0: 1, 1: 1, 2: 1})
    stage.state(0).is_paused = True
    stage.state(1).is_leaving = True
    stage.answer(FetchRequest, fetched({0: b"", 1: b"", 2: b""}))

    assert stage.fetching() == {1: {2: 0}}


def test_an_answer_to_a_question_of_the_past_is_dropped() -> None:
    stage = Stage({0: 1, 1: 1})
    stage.agent.subscription.stand(stage.state(0), Place(offset=Offset(40)))
    stage.agent.subscription.remove([partition(1)])

    stage.answer(FetchRequest, fetched({0: records(0), 1: records(0)}))

    assert not stage.state(0).parcels
    assert stage.fetching() == {1: {0: 40}}


def test_a_partition_that_moved_while_it_was_fetched_is_not_fetched_twice() -> None:
    stage = Stage({0: 1, 1: 2})
    stage.agent.cluster.learn(metadata({0: 2, 1: 2}), stage.now)
    stage.answer(FetchRequest, fetched({1: b""}), broker=2)

    assert stage.fetching() == {1: {0: 0}, 2: {1: 0}}


def test_what_cannot_be_read_is_not_followed_by_anything() -> None:
    stage = Stage({0: 1})
    stage.answer(FetchRequest, fetched({0: b"\0" * 80}))

    assert stage.fetching() == {}
    with pytest.raises(BadRecord):
        stage.state(0).parcels[0].take(1)


@pytest.mark.parametrize("loss", list(Loss))
def test_a_lost_fetch_is_tried_again_after_a_while(loss: Loss) -> None:
    stage = Stage({0: 1}, retry_backoff_ms=100)
    stage.advance(1_000)
    stage.answer(FetchRequest, loss)

    assert stage.fetching() == {}
    assert stage.asked(MetadataRequest)
    stage.advance(100)
    assert stage.fetching() == {1: {0: 0}}


def test_an_error_of_the_whole_answer_is_tried_again_after_a_while() -> None:
    stage = Stage({0: 1}, retry_backoff_ms=100)
    stage.answer(FetchRequest, FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))

    assert stage.fetching() == {}
    stage.advance(100)
    assert stage.fetching() == {1: {0: 0}}


def test_an_offset_out_of_range_is_reset_by_the_policy() -> None:
    stage = Stage({0: 1}, auto_offset_reset="earliest")
    stage.answer(FetchRequest, fetched({0: b""}, error_code=ErrorCode.OFFSET_OUT_OF_RANGE))

    assert stage.state(0).stage is PartitionStage.RESET
    (request,) = stage.asked(ListOffsetsRequest)
    assert isinstance(request.body, ListOffsetsRequest)
    assert request.body.topics[0].partitions[0].timestamp == -2


def test_what_is_buffered_is_read_before_an_offset_is_found_out_of_range() -> None:
    stage = Stage({0: 1}, auto_offset_reset="none")
    stage.answer(FetchRequest, fetched({0: records(0)}))
    out_of_range = fetched({0: b""}, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)

    stage.answer(FetchRequest, out_of_range)
    assert stage.agent.take_failure() is None
    stage.read(0)
    stage.advance(1_000)
    stage.answer(FetchRequest, out_of_range)
    assert isinstance(stage.agent.take_failure(), OffsetNotValid)


def test_a_refusal_is_told_until_something_is_done_about_it() -> None:
    stage = Stage({0: 1})
    stage.answer(FetchRequest, fetched({0: b""}, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED))

    assert isinstance(stage.agent.take_failure(), BrokerRefused)
    assert isinstance(stage.agent.take_failure(), BrokerRefused)
    stage.agent.subscription.remove([partition(0)])
    assert stage.agent.take_failure() is None


def test_a_nearer_replica_is_asked_until_its_time_is_up() -> None:
    stage = Stage({0: 1, 1: 2}, metadata_max_age_ms=1_000)
    stage.answer(FetchRequest, fetched({0: b""}, preferred_read_replica=2), broker=1)
    stage.answer(FetchRequest, fetched({1: b""}), broker=2)

    assert stage.fetching() == {2: {1: 0, 0: 0}}
    stage.advance(1_000)
    stage.answer(FetchRequest, fetched({0: b"", 1: b""}), broker=2)
    assert stage.fetching() == {1: {0: 0}, 2: {1: 0}}


def test_a_new_leader_is_asked_first_whether_it_has_what_was_read() -> None:
    stage = Stage({0: 1})
    stage.answer(FetchRequest, fetched({0: records(0, 3)}))
    stage.agent.subscription.give(stage.state(0), Place(offset=Offset(2), leader_epoch=0))
    stage.agent.cluster.learn(metadata({0: 1}, epoch=1), stage.now)
    stage.advance()

    assert stage.state(0).stage is PartitionStage.VALIDATION
    assert not stage.state(0).parcels
    assert stage.asked(OffsetForLeaderEpochRequest)


def test_a_topic_is_asked_about_while_its_leader_is_not_known() -> None:
    stage = Stage({0: 1})
    stage.agent.subscription.add([partition(7)])
    stage.agent.subscription.stand(stage.state(7), Place(offset=Offset(0)))
    stage.advance(1_000)

    assert stage.asked(MetadataRequest)
    assert stage.agent.cluster.find_leader(partition(7)) is None
    assert stage.agent.cluster.partition_counts(frozenset((ORDERS, Topic("no")))) == {ORDERS: 1}
