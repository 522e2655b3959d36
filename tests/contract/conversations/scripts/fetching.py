"""Fetching records: from where, how many, what is wrong with the place, and in sessions."""

from dataclasses import replace

from kohort.types import ZERO_UUID, Millis, Offset, Partition, Topic, Uuid
from kohort.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.records import batch, fetching, filled, made, producing
from tests.contract.conversations.talking import Talk

NOT_A_TOPIC = Uuid(b"not any topic id")


@conversation(vary=FetchRequest)
def records_are_found_by_offset_in_their_batches(talk: Talk) -> None:
    t, topic_id = filled(talk, batch("x", "y"), batch("z"))
    a = talk.speaker("a")

    for offset in (0, 1, 2, 3):
        a.ask(fetching(t, offset, topic_id=topic_id))


@conversation(vary=FetchRequest)
def an_offset_that_is_not_there_is_refused(talk: Talk) -> None:
    t, topic_id = filled(talk, batch("x"))
    a = talk.speaker("a")

    a.ask(fetching(t, 2, topic_id=topic_id))
    a.ask(fetching(t, -1, topic_id=topic_id))


@conversation(vary=FetchRequest)
def an_empty_partition_has_nothing_to_fetch(talk: Talk) -> None:
    t, topic_id = made(talk)

    talk.speaker("a").ask(fetching(t, 0, topic_id=topic_id))


@conversation(vary=FetchRequest)
def what_does_not_exist_cannot_be_fetched(talk: Talk) -> None:
    t, topic_id = filled(talk, batch("x"))
    a = talk.speaker("a")

    a.ask(fetching(t, 0, 9, topic_id=topic_id))
    a.ask(fetching(t, 0, 0, 9, topic_id=topic_id))
    a.ask(fetching(Topic(talk.name("unknown")), 0, topic_id=NOT_A_TOPIC))


@conversation(vary=FetchRequest)
def a_topic_without_a_name_cannot_be_fetched(talk: Talk) -> None:
    talk.speaker("a").ask(fetching(Topic(""), 0, topic_id=ZERO_UUID))


@conversation(vary=FetchRequest)
def nothing_may_be_fetched(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    a.ask(fetching(t, 0, topic_id=topic_id, topics=()))
    none = FetchTopic(topic=t, topic_id=topic_id)
    a.ask(fetching(t, 0, topic_id=topic_id, topics=(none,)))


@conversation(vary=FetchRequest)
def a_first_batch_is_given_whatever_its_size(talk: Talk) -> None:
    t, topic_id = filled(talk, batch("x" * 300), batch("y" * 300), batch("z"))
    a = talk.speaker("a")

    a.ask(fetching(t, 0, topic_id=topic_id, partition_words={"partition_max_bytes": 1}))
    a.ask(fetching(t, 0, topic_id=topic_id, partition_words={"partition_max_bytes": 0}))
    a.ask(fetching(t, 0, topic_id=topic_id, max_bytes=1))
    a.ask(fetching(t, 0, topic_id=topic_id, max_bytes=0))
    a.ask(fetching(t, 0, topic_id=topic_id, partition_words={"partition_max_bytes": 800}))


@conversation(vary=FetchRequest)
def partitions_share_what_one_answer_may_hold(talk: Talk) -> None:
    t, topic_id = made(talk, partitions=3)
    a = talk.speaker("a")
    for partition in range(3):
        for value in "xyz":
            talk.peek(producing(t, batch(value * 300), partition, topic_id=topic_id))

    for most in (300, 400, 900, 1200, 1300, 2000, 1 << 20):
        a.ask(fetching(t, 0, 0, 1, 2, topic_id=topic_id, max_bytes=most))
    words = {"partition_max_bytes": 500}
    a.ask(fetching(t, 0, 0, 1, 2, topic_id=topic_id, partition_words=words))
    a.ask(fetching(t, 0, 0, 1, 2, topic_id=topic_id, partition_words=words, max_bytes=700))


@conversation(vary=FetchRequest)
def a_committed_reader_is_told_of_aborted_transactions(talk: Talk) -> None:
    t, topic_id = filled(talk, batch("x"))
    a = talk.speaker("a")

    a.ask(fetching(t, 0, topic_id=topic_id, isolation_level=1))
    a.ask(fetching(t, 1, topic_id=topic_id, isolation_level=1))
    a.ask(fetching(t, 9, topic_id=topic_id, isolation_level=1))


@conversation(vary=FetchRequest)
def a_reader_waits_for_what_is_not_there_yet(talk: Talk) -> None:
    t, topic_id = made(talk)
    a, b = talk.speaker("a"), talk.speaker("b")

    a.send(fetching(t, 0, topic_id=topic_id, min_bytes=1, max_wait_ms=10_000))
    b.ask(producing(t, batch("x"), topic_id=topic_id))
    a.hear()


@conversation(vary=FetchRequest)
def a_reader_waits_no_longer_than_it_said(talk: Talk) -> None:
    t, topic_id = made(talk)

    talk.speaker("a").ask(fetching(t, 0, topic_id=topic_id, min_bytes=1, max_wait_ms=50))


@conversation(vary=FetchRequest)
def an_error_is_not_waited_for(talk: Talk) -> None:
    t, topic_id = made(talk, partitions=2)
    asked = fetching(t, 0, 0, 1, topic_id=topic_id, min_bytes=1, max_wait_ms=60_000)
    first, second = asked.topics[0].partitions
    beyond = (first, replace(second, fetch_offset=Offset(5)))

    talk.speaker("a").ask(replace(asked, topics=(replace(asked.topics[0], partitions=beyond),)))


@conversation(vary=FetchRequest, since=9)
def a_reader_of_another_epoch_is_told(talk: Talk) -> None:
    t, topic_id = filled(talk, batch("x"))
    a = talk.speaker("a")

    for epoch in (0, 1, 99):
        words = {"current_leader_epoch": epoch}
        a.ask(fetching(t, 0, topic_id=topic_id, partition_words=words))


@conversation(vary=FetchRequest, since=12)
def a_reader_that_has_read_another_history_is_told(talk: Talk) -> None:
    t, topic_id = filled(talk, batch("x"), batch("y"))
    a = talk.speaker("a")

    for epoch, offset in ((0, 1), (1, 1), (0, 2), (0, 5), (1, 5)):
        words = {"last_fetched_epoch": epoch, "current_leader_epoch": 0}
        asked = fetching(t, offset, topic_id=topic_id, partition_words=words)
        a.ask(replace(asked, min_bytes=1, max_wait_ms=Millis(50)))


@conversation(vary=FetchRequest, since=11)
def a_rack_changes_nothing_where_there_is_one_broker(talk: Talk) -> None:
    t, topic_id = filled(talk, batch("x"))

    talk.speaker("a").ask(fetching(t, 0, topic_id=topic_id, rack_id="here"))


@conversation(vary=FetchRequest)
def partitions_are_given_in_the_order_they_are_asked_for(talk: Talk) -> None:
    t, topic_id = made(talk, partitions=3)
    a = talk.speaker("a")
    for partition in range(3):
        a.ask(producing(t, batch("x"), partition, topic_id=topic_id))

    a.ask(fetching(t, 0, 2, 0, 1, topic_id=topic_id))


# Sessions

SESSIONS = "there are no fetch sessions"


@conversation(vary=FetchRequest, since=7)
def a_session_is_offered_to_who_asks_for_one(talk: Talk) -> None:
    t, topic_id = filled(talk, batch("x"))

    with talk.deviates(SESSIONS, "answer.session_id"):
        talk.speaker("a").ask(fetching(t, 0, topic_id=topic_id, session_epoch=0))


@conversation(vary=FetchRequest, since=7)
def a_session_nobody_knows_is_refused(talk: Talk) -> None:
    t, topic_id = filled(talk, batch("x"))
    a = talk.speaker("a")

    a.ask(fetching(t, 0, topic_id=topic_id, session_id=12345, session_epoch=1))
    a.ask(fetching(t, 0, topic_id=topic_id, session_id=12345, session_epoch=-1))


@conversation(vary=FetchRequest, since=7)
def a_session_that_counts_wrong_is_refused(talk: Talk) -> None:
    t, topic_id = filled(talk, batch("x"))
    a = talk.speaker("a")
    with talk.deviates(SESSIONS, "answer.session_id"):
        first = a.ask(fetching(t, 0, topic_id=topic_id, session_epoch=0))

    with talk.deviates(SESSIONS, "a*"):
        a.ask(fetching(t, 0, topic_id=topic_id, session_id=first.session_id, session_epoch=7))


@conversation()
def a_session_answers_only_what_has_changed(talk: Talk) -> None:
    t, topic_id = filled(talk, batch("x"))
    a = talk.speaker("a")
    with talk.deviates(SESSIONS, "answer.session_id"):
        first = a.ask(fetching(t, 1, topic_id=topic_id, session_epoch=0))

    words = {"session_id": first.session_id, "topics": ()}
    with talk.deviates(SESSIONS, "a*"):
        a.ask(fetching(t, 1, topic_id=topic_id, session_epoch=1, **words))
        a.ask(fetching(t, 1, topic_id=topic_id, session_epoch=2, **words))
        forgotten = (ForgottenTopic(topic_id=topic_id, partitions=(Partition(0),)),)
        asked = fetching(t, 1, topic_id=topic_id, session_epoch=3, **words)
        a.ask(replace(asked, forgotten_topics_data=forgotten))


@conversation(vary=FetchRequest)
def a_partition_that_is_named_twice_is_answered(talk: Talk) -> None:
    t, topic_id = filled(talk, batch("x"))
    twice = tuple(
        FetchPartition(
            partition=Partition(0), fetch_offset=Offset(each), partition_max_bytes=1 << 20
        )
        for each in (0, 1)
    )
    topics = (FetchTopic(topic=t, topic_id=topic_id, partitions=twice),)

    with talk.deviates("a partition that is named twice is answered twice", "answer*"):
        talk.speaker("a").ask(fetching(t, 0, topic_id=topic_id, topics=topics))
