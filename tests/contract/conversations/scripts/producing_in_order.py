"""Idempotent producers: what came before is remembered, and what does not follow it refused."""

from kohort.types import Millis, ProducerEpoch, ProducerId, TransactionalId
from kohort.wire.api.k00_produce import ProduceRequest
from kohort.wire.api.k22_init_producer_id import InitProducerIdRequest
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.records import (
    batch,
    changed,
    fetching,
    listing,
    made,
    numbered,
    producing,
)
from tests.contract.conversations.talking import Talk


def producer_id(talk: Talk) -> int:
    given: int = talk.peek(InitProducerIdRequest(transactional_id=None)).producer_id
    return given


@conversation(vary=InitProducerIdRequest)
def every_producer_gets_an_id_of_its_own(talk: Talk) -> None:
    a = talk.speaker("a")

    a.ask(InitProducerIdRequest(transactional_id=None))
    a.ask(InitProducerIdRequest(transactional_id=None))


@conversation(vary=InitProducerIdRequest, since=3)
def a_producer_that_had_an_id_gets_a_new_one(talk: Talk) -> None:
    a = talk.speaker("a")
    had = a.ask(InitProducerIdRequest(transactional_id=None))

    def again(producer: int, epoch: int) -> InitProducerIdRequest:
        return InitProducerIdRequest(
            transactional_id=None,
            producer_id=ProducerId(producer),
            producer_epoch=ProducerEpoch(epoch),
        )

    a.ask(again(had.producer_id, had.producer_epoch))
    a.ask(again(had.producer_id, -1))
    a.ask(again(-1, 0))


@conversation(vary=InitProducerIdRequest)
def a_transactional_id_may_not_be_empty(talk: Talk) -> None:
    talk.speaker("a").ask(transactional(""))


def transactional(name: str) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=TransactionalId(name), transaction_timeout_ms=Millis(1000)
    )


@conversation()
def transactional_producers_are_turned_away(talk: Talk) -> None:
    name = talk.name("transaction")
    talk.wait_for_transactions(name)

    with talk.deviates("there are no transactions yet", "answer*"):
        talk.speaker("a").ask_until(
            transactional(name),
            lambda answer: answer.error_code not in (14, 15, 16),
        )


@conversation(vary=ProduceRequest)
def a_batch_that_comes_twice_is_written_once(talk: Talk) -> None:
    t, topic_id = made(talk)
    p = producer_id(talk)
    a = talk.speaker("a")

    a.ask(producing(t, numbered("x", "y", producer=p), topic_id=topic_id))
    a.ask(producing(t, numbered("x", "y", producer=p), topic_id=topic_id))
    a.ask(producing(t, numbered("z", producer=p, sequence=2), topic_id=topic_id))
    a.ask(producing(t, numbered("x", "y", producer=p), topic_id=topic_id))
    a.ask(fetching(t, 0, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_batch_that_does_not_follow_the_last_is_refused(talk: Talk) -> None:
    t, topic_id = made(talk)
    p = producer_id(talk)
    a = talk.speaker("a")
    a.ask(producing(t, numbered("x", producer=p), topic_id=topic_id))

    a.ask(producing(t, numbered("y", producer=p, sequence=2), topic_id=topic_id))
    a.ask(producing(t, numbered("x", "y", producer=p, sequence=0), topic_id=topic_id))
    a.ask(listing(t, -1))


@conversation()
def a_producer_nobody_knows_may_begin_anywhere(talk: Talk) -> None:
    t, topic_id = made(talk)
    a = talk.speaker("a")

    a.ask(producing(t, numbered("x", producer=producer_id(talk), sequence=7), topic_id=topic_id))
    a.ask(producing(t, numbered("x", producer=producer_id(talk), epoch=3), topic_id=topic_id))
    a.ask(producing(t, numbered("x", producer=2**40, sequence=7, epoch=9), topic_id=topic_id))


@conversation()
def five_batches_are_remembered(talk: Talk) -> None:
    t, topic_id = made(talk)
    p = producer_id(talk)
    a = talk.speaker("a")
    for sequence in range(6):
        a.ask(producing(t, numbered("x", producer=p, sequence=sequence), topic_id=topic_id))

    for sequence in range(6):
        a.ask(producing(t, numbered("x", producer=p, sequence=sequence), topic_id=topic_id))


@conversation()
def a_new_epoch_begins_with_its_first_batch(talk: Talk) -> None:
    t, topic_id = made(talk)
    p = producer_id(talk)
    a = talk.speaker("a")
    a.ask(producing(t, numbered("x", producer=p), topic_id=topic_id))

    a.ask(producing(t, numbered("x", producer=p, epoch=1, sequence=1), topic_id=topic_id))
    a.ask(producing(t, numbered("x", producer=p, epoch=1), topic_id=topic_id))
    a.ask(producing(t, numbered("x", producer=p, epoch=0, sequence=1), topic_id=topic_id))
    a.ask(producing(t, numbered("x", producer=p, epoch=0, sequence=0), topic_id=topic_id))


@conversation()
def numbers_go_round_after_the_last(talk: Talk) -> None:
    t, topic_id = made(talk)
    p = producer_id(talk)
    a = talk.speaker("a")
    last = 2**31 - 1
    a.ask(producing(t, numbered("x", producer=p, sequence=last - 1), topic_id=topic_id))

    a.ask(producing(t, numbered("x", "y", "z", producer=p, sequence=last), topic_id=topic_id))
    a.ask(producing(t, numbered("x", producer=p, sequence=2), topic_id=topic_id))
    a.ask(producing(t, numbered("x", producer=p, sequence=1), topic_id=topic_id))


@conversation()
def a_producer_needs_all_of_its_numbers(talk: Talk) -> None:
    t, topic_id = made(talk)
    p = ProducerId(producer_id(talk))
    a = talk.speaker("a")

    a.ask(producing(t, changed(batch("x"), producer_id=p), topic_id=topic_id))
    a.ask(producing(t, changed(batch("x"), producer_id=p, producer_epoch=0), topic_id=topic_id))
    a.ask(producing(t, changed(batch("x"), base_sequence=4), topic_id=topic_id))
    a.ask(producing(t, changed(batch("x"), producer_epoch=4), topic_id=topic_id))


@conversation()
def a_batch_that_comes_twice_keeps_the_time_it_was_appended(talk: Talk) -> None:
    t, topic_id = made(talk, message_timestamp_type="LogAppendTime")
    p = producer_id(talk)
    a = talk.speaker("a")

    a.ask(producing(t, numbered("x", producer=p), topic_id=topic_id))
    a.ask(producing(t, numbered("x", producer=p), topic_id=topic_id))


@conversation()
def a_batch_that_comes_twice_keeps_its_own_time_too(talk: Talk) -> None:
    t, topic_id = made(talk)
    p = producer_id(talk)
    a = talk.speaker("a")

    a.ask(producing(t, numbered("x", "y", producer=p), topic_id=topic_id))
    a.ask(producing(t, numbered("x", "y", producer=p), topic_id=topic_id))


@conversation()
def partitions_remember_producers_each_for_itself(talk: Talk) -> None:
    t, topic_id = made(talk, partitions=2)
    p = producer_id(talk)
    a = talk.speaker("a")

    a.ask(producing(t, numbered("x", producer=p), 0, topic_id=topic_id))
    a.ask(producing(t, numbered("x", producer=p), 1, topic_id=topic_id))
    a.ask(producing(t, numbered("x", producer=p, sequence=1), 1, topic_id=topic_id))
    a.ask(producing(t, numbered("x", producer=p, sequence=2), 0, topic_id=topic_id))
