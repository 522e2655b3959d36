"""Fetch: offsets, size limits, errors, and fetch sessions."""

from dataclasses import replace

from kohort.types import ZERO_UUID, Millis, Offset, Partition, Topic, Uuid
from kohort.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.records import (
    batch,
    create_filled_topic,
    create_topic,
    fetch_request,
    produce_request,
)
from tests.contract.conversations.session import Session

NOT_A_TOPIC = Uuid(b"not any topic id")


@conversation(vary=FetchRequest)
def records_are_found_by_offset_in_their_batches(session: Session) -> None:
    t, topic_id = create_filled_topic(session, batch("x", "y"), batch("z"))
    a = session.client("a")

    for offset in (0, 1, 2, 3):
        a.ask(fetch_request(t, offset, topic_id=topic_id))


@conversation(vary=FetchRequest)
def an_offset_out_of_range_is_refused(session: Session) -> None:
    t, topic_id = create_filled_topic(session, batch("x"))
    a = session.client("a")

    a.ask(fetch_request(t, 2, topic_id=topic_id))
    a.ask(fetch_request(t, -1, topic_id=topic_id))


@conversation(vary=FetchRequest)
def an_empty_partition_has_nothing_to_fetch(session: Session) -> None:
    t, topic_id = create_topic(session)

    session.client("a").ask(fetch_request(t, 0, topic_id=topic_id))


@conversation(vary=FetchRequest)
def unknown_partitions_cannot_be_fetched(session: Session) -> None:
    t, topic_id = create_filled_topic(session, batch("x"))
    a = session.client("a")

    a.ask(fetch_request(t, 0, 9, topic_id=topic_id))
    a.ask(fetch_request(t, 0, 0, 9, topic_id=topic_id))
    a.ask(fetch_request(Topic(session.name("unknown")), 0, topic_id=NOT_A_TOPIC))


@conversation(vary=FetchRequest)
def a_topic_without_a_name_cannot_be_fetched(session: Session) -> None:
    session.client("a").ask(fetch_request(Topic(""), 0, topic_id=ZERO_UUID))


@conversation(vary=FetchRequest)
def an_empty_fetch_is_allowed(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    a.ask(fetch_request(t, 0, topic_id=topic_id, topics=()))
    none = FetchTopic(topic=t, topic_id=topic_id)
    a.ask(fetch_request(t, 0, topic_id=topic_id, topics=(none,)))


@conversation(vary=FetchRequest)
def the_first_batch_is_returned_regardless_of_its_size(session: Session) -> None:
    t, topic_id = create_filled_topic(session, batch("x" * 300), batch("y" * 300), batch("z"))
    a = session.client("a")

    a.ask(fetch_request(t, 0, topic_id=topic_id, partition_fields={"partition_max_bytes": 1}))
    a.ask(fetch_request(t, 0, topic_id=topic_id, partition_fields={"partition_max_bytes": 0}))
    a.ask(fetch_request(t, 0, topic_id=topic_id, max_bytes=1))
    a.ask(fetch_request(t, 0, topic_id=topic_id, max_bytes=0))
    a.ask(fetch_request(t, 0, topic_id=topic_id, partition_fields={"partition_max_bytes": 800}))


@conversation(vary=FetchRequest)
def partitions_share_the_maximum_response_size(session: Session) -> None:
    t, topic_id = create_topic(session, partitions=3)
    a = session.client("a")
    for partition in range(3):
        for value in "xyz":
            session.query(produce_request(t, batch(value * 300), partition, topic_id=topic_id))

    for most in (300, 400, 900, 1200, 1300, 2000, 1 << 20):
        a.ask(fetch_request(t, 0, 0, 1, 2, topic_id=topic_id, max_bytes=most))
    fields = {"partition_max_bytes": 500}
    a.ask(fetch_request(t, 0, 0, 1, 2, topic_id=topic_id, partition_fields=fields))
    a.ask(fetch_request(t, 0, 0, 1, 2, topic_id=topic_id, partition_fields=fields, max_bytes=700))


@conversation(vary=FetchRequest)
def read_committed_returns_a_list_of_aborted_transactions(session: Session) -> None:
    t, topic_id = create_filled_topic(session, batch("x"))
    a = session.client("a")

    a.ask(fetch_request(t, 0, topic_id=topic_id, isolation_level=1))
    a.ask(fetch_request(t, 1, topic_id=topic_id, isolation_level=1))
    a.ask(fetch_request(t, 9, topic_id=topic_id, isolation_level=1))


@conversation(vary=FetchRequest)
def a_fetch_waits_for_new_records(session: Session) -> None:
    t, topic_id = create_topic(session)
    a, b = session.client("a"), session.client("b")

    a.send(fetch_request(t, 0, topic_id=topic_id, min_bytes=1, max_wait_ms=10_000))
    b.ask(produce_request(t, batch("x"), topic_id=topic_id))
    a.receive()


@conversation(vary=FetchRequest)
def a_fetch_waits_at_most_max_wait_ms(session: Session) -> None:
    t, topic_id = create_topic(session)

    session.client("a").ask(fetch_request(t, 0, topic_id=topic_id, min_bytes=1, max_wait_ms=50))


@conversation(vary=FetchRequest)
def a_fetch_with_an_error_does_not_wait(session: Session) -> None:
    t, topic_id = create_topic(session, partitions=2)
    asked = fetch_request(t, 0, 0, 1, topic_id=topic_id, min_bytes=1, max_wait_ms=60_000)
    first, second = asked.topics[0].partitions
    beyond = (first, replace(second, fetch_offset=Offset(5)))

    session.client("a").ask(replace(asked, topics=(replace(asked.topics[0], partitions=beyond),)))


@conversation(vary=FetchRequest, since=9)
def a_different_leader_epoch_is_refused(session: Session) -> None:
    t, topic_id = create_filled_topic(session, batch("x"))
    a = session.client("a")

    for epoch in (0, 1, 99):
        fields = {"current_leader_epoch": epoch}
        a.ask(fetch_request(t, 0, topic_id=topic_id, partition_fields=fields))


@conversation(vary=FetchRequest, since=12)
def a_diverging_fetch_epoch_is_reported(session: Session) -> None:
    t, topic_id = create_filled_topic(session, batch("x"), batch("y"))
    a = session.client("a")

    for epoch, offset in ((0, 1), (1, 1), (0, 2), (0, 5), (1, 5)):
        fields = {"last_fetched_epoch": epoch, "current_leader_epoch": 0}
        asked = fetch_request(t, offset, topic_id=topic_id, partition_fields=fields)
        a.ask(replace(asked, min_bytes=1, max_wait_ms=Millis(50)))


@conversation(vary=FetchRequest, since=11)
def a_rack_id_changes_nothing_with_one_broker(session: Session) -> None:
    t, topic_id = create_filled_topic(session, batch("x"))

    session.client("a").ask(fetch_request(t, 0, topic_id=topic_id, rack_id="here"))


@conversation(vary=FetchRequest)
def partitions_are_returned_in_the_requested_order(session: Session) -> None:
    t, topic_id = create_topic(session, partitions=3)
    a = session.client("a")
    for partition in range(3):
        a.ask(produce_request(t, batch("x"), partition, topic_id=topic_id))

    a.ask(fetch_request(t, 0, 2, 0, 1, topic_id=topic_id))


# Sessions

SESSIONS = "there are no fetch sessions"


@conversation(vary=FetchRequest, since=7)
def a_fetch_session_is_created_on_request(session: Session) -> None:
    t, topic_id = create_filled_topic(session, batch("x"))

    with session.deviates(SESSIONS, "answer.session_id"):
        session.client("a").ask(fetch_request(t, 0, topic_id=topic_id, session_epoch=0))


@conversation(vary=FetchRequest, since=7)
def an_unknown_fetch_session_is_refused(session: Session) -> None:
    t, topic_id = create_filled_topic(session, batch("x"))
    a = session.client("a")

    a.ask(fetch_request(t, 0, topic_id=topic_id, session_id=12345, session_epoch=1))
    a.ask(fetch_request(t, 0, topic_id=topic_id, session_id=12345, session_epoch=-1))


@conversation(vary=FetchRequest, since=7)
def a_wrong_fetch_session_epoch_is_refused(session: Session) -> None:
    t, topic_id = create_filled_topic(session, batch("x"))
    a = session.client("a")
    with session.deviates(SESSIONS, "answer.session_id"):
        first = a.ask(fetch_request(t, 0, topic_id=topic_id, session_epoch=0))

    with session.deviates(SESSIONS, "a*"):
        a.ask(fetch_request(t, 0, topic_id=topic_id, session_id=first.session_id, session_epoch=7))


@conversation()
def an_incremental_fetch_returns_only_changed_partitions(session: Session) -> None:
    t, topic_id = create_filled_topic(session, batch("x"))
    a = session.client("a")
    with session.deviates(SESSIONS, "answer.session_id"):
        first = a.ask(fetch_request(t, 1, topic_id=topic_id, session_epoch=0))

    fields = {"session_id": first.session_id, "topics": ()}
    with session.deviates(SESSIONS, "a*"):
        a.ask(fetch_request(t, 1, topic_id=topic_id, session_epoch=1, **fields))
        a.ask(fetch_request(t, 1, topic_id=topic_id, session_epoch=2, **fields))
        forgotten = (ForgottenTopic(topic_id=topic_id, partitions=(Partition(0),)),)
        asked = fetch_request(t, 1, topic_id=topic_id, session_epoch=3, **fields)
        a.ask(replace(asked, forgotten_topics_data=forgotten))


@conversation(vary=FetchRequest)
def a_partition_that_is_named_twice_is_answered(session: Session) -> None:
    t, topic_id = create_filled_topic(session, batch("x"))
    twice = tuple(
        FetchPartition(
            partition=Partition(0), fetch_offset=Offset(each), partition_max_bytes=1 << 20
        )
        for each in (0, 1)
    )
    topics = (FetchTopic(topic=t, topic_id=topic_id, partitions=twice),)

    session.client("a").ask(fetch_request(t, 0, topic_id=topic_id, topics=topics))
