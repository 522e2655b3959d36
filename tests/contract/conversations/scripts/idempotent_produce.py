"""InitProducerId, and Produce from idempotent producers."""

from kohort.types import Millis, ProducerEpoch, ProducerId, TransactionalId
from kohort.wire.api.k00_produce import ProduceRequest
from kohort.wire.api.k22_init_producer_id import InitProducerIdRequest
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.records import (
    batch,
    create_topic,
    fetch_request,
    idempotent_batch,
    list_offsets_request,
    produce_request,
    with_header,
)
from tests.contract.conversations.session import Session


def producer_id(session: Session) -> int:
    given: int = session.query(InitProducerIdRequest(transactional_id=None)).producer_id
    return given


@conversation(vary=InitProducerIdRequest)
def every_producer_gets_a_unique_id(session: Session) -> None:
    a = session.client("a")

    a.ask(InitProducerIdRequest(transactional_id=None))
    a.ask(InitProducerIdRequest(transactional_id=None))


@conversation(vary=InitProducerIdRequest, since=3)
def a_producer_that_had_an_id_gets_a_new_one(session: Session) -> None:
    a = session.client("a")
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
def a_transactional_id_may_not_be_empty(session: Session) -> None:
    session.client("a").ask(transactional(""))


def transactional(name: str) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=TransactionalId(name), transaction_timeout_ms=Millis(1000)
    )


@conversation()
def transactional_producers_are_refused(session: Session) -> None:
    name = session.name("transaction")
    session.wait_for_transactions(name)

    with session.deviates("transactions are not supported", "answer*"):
        session.client("a").ask_until(
            transactional(name),
            lambda answer: answer.error_code not in (14, 15, 16),
        )


@conversation(vary=ProduceRequest)
def a_duplicate_batch_is_written_once(session: Session) -> None:
    t, topic_id = create_topic(session)
    p = producer_id(session)
    a = session.client("a")

    a.ask(produce_request(t, idempotent_batch("x", "y", producer=p), topic_id=topic_id))
    a.ask(produce_request(t, idempotent_batch("x", "y", producer=p), topic_id=topic_id))
    a.ask(produce_request(t, idempotent_batch("z", producer=p, sequence=2), topic_id=topic_id))
    a.ask(produce_request(t, idempotent_batch("x", "y", producer=p), topic_id=topic_id))
    a.ask(fetch_request(t, 0, topic_id=topic_id))


@conversation(vary=ProduceRequest)
def a_batch_out_of_sequence_is_refused(session: Session) -> None:
    t, topic_id = create_topic(session)
    p = producer_id(session)
    a = session.client("a")
    a.ask(produce_request(t, idempotent_batch("x", producer=p), topic_id=topic_id))

    a.ask(produce_request(t, idempotent_batch("y", producer=p, sequence=2), topic_id=topic_id))
    a.ask(produce_request(t, idempotent_batch("x", "y", producer=p, sequence=0), topic_id=topic_id))
    a.ask(list_offsets_request(t, -1))


@conversation()
def an_unknown_producer_can_start_at_any_sequence(session: Session) -> None:
    t, topic_id = create_topic(session)
    a = session.client("a")

    a.ask(
        produce_request(
            t, idempotent_batch("x", producer=producer_id(session), sequence=7), topic_id=topic_id
        )
    )
    a.ask(
        produce_request(
            t, idempotent_batch("x", producer=producer_id(session), epoch=3), topic_id=topic_id
        )
    )
    a.ask(
        produce_request(
            t, idempotent_batch("x", producer=2**40, sequence=7, epoch=9), topic_id=topic_id
        )
    )


@conversation()
def the_last_five_batches_are_recognised_as_duplicates(session: Session) -> None:
    t, topic_id = create_topic(session)
    p = producer_id(session)
    a = session.client("a")
    for sequence in range(6):
        a.ask(
            produce_request(
                t, idempotent_batch("x", producer=p, sequence=sequence), topic_id=topic_id
            )
        )

    for sequence in range(6):
        a.ask(
            produce_request(
                t, idempotent_batch("x", producer=p, sequence=sequence), topic_id=topic_id
            )
        )


@conversation()
def a_new_producer_epoch_starts_with_its_first_batch(session: Session) -> None:
    t, topic_id = create_topic(session)
    p = producer_id(session)
    a = session.client("a")
    a.ask(produce_request(t, idempotent_batch("x", producer=p), topic_id=topic_id))

    a.ask(
        produce_request(
            t, idempotent_batch("x", producer=p, epoch=1, sequence=1), topic_id=topic_id
        )
    )
    a.ask(produce_request(t, idempotent_batch("x", producer=p, epoch=1), topic_id=topic_id))
    a.ask(
        produce_request(
            t, idempotent_batch("x", producer=p, epoch=0, sequence=1), topic_id=topic_id
        )
    )
    a.ask(
        produce_request(
            t, idempotent_batch("x", producer=p, epoch=0, sequence=0), topic_id=topic_id
        )
    )


@conversation()
def sequence_numbers_wrap_around(session: Session) -> None:
    t, topic_id = create_topic(session)
    p = producer_id(session)
    a = session.client("a")
    last = 2**31 - 1
    a.ask(
        produce_request(t, idempotent_batch("x", producer=p, sequence=last - 1), topic_id=topic_id)
    )

    a.ask(
        produce_request(
            t, idempotent_batch("x", "y", "z", producer=p, sequence=last), topic_id=topic_id
        )
    )
    a.ask(produce_request(t, idempotent_batch("x", producer=p, sequence=2), topic_id=topic_id))
    a.ask(produce_request(t, idempotent_batch("x", producer=p, sequence=1), topic_id=topic_id))


@conversation()
def producer_id_epoch_and_sequence_must_all_be_set(session: Session) -> None:
    t, topic_id = create_topic(session)
    p = ProducerId(producer_id(session))
    a = session.client("a")

    a.ask(produce_request(t, with_header(batch("x"), producer_id=p), topic_id=topic_id))
    a.ask(
        produce_request(
            t, with_header(batch("x"), producer_id=p, producer_epoch=0), topic_id=topic_id
        )
    )
    a.ask(produce_request(t, with_header(batch("x"), base_sequence=4), topic_id=topic_id))
    a.ask(produce_request(t, with_header(batch("x"), producer_epoch=4), topic_id=topic_id))


@conversation()
def a_duplicate_batch_returns_the_original_append_time(session: Session) -> None:
    t, topic_id = create_topic(session, message_timestamp_type="LogAppendTime")
    p = producer_id(session)
    a = session.client("a")

    a.ask(produce_request(t, idempotent_batch("x", producer=p), topic_id=topic_id))
    a.ask(produce_request(t, idempotent_batch("x", producer=p), topic_id=topic_id))


@conversation()
def a_duplicate_batch_returns_no_append_time_with_create_time(session: Session) -> None:
    t, topic_id = create_topic(session)
    p = producer_id(session)
    a = session.client("a")

    a.ask(produce_request(t, idempotent_batch("x", "y", producer=p), topic_id=topic_id))
    a.ask(produce_request(t, idempotent_batch("x", "y", producer=p), topic_id=topic_id))


@conversation()
def producer_state_is_kept_per_partition(session: Session) -> None:
    t, topic_id = create_topic(session, partitions=2)
    p = producer_id(session)
    a = session.client("a")

    a.ask(produce_request(t, idempotent_batch("x", producer=p), 0, topic_id=topic_id))
    a.ask(produce_request(t, idempotent_batch("x", producer=p), 1, topic_id=topic_id))
    a.ask(produce_request(t, idempotent_batch("x", producer=p, sequence=1), 1, topic_id=topic_id))
    a.ask(produce_request(t, idempotent_batch("x", producer=p, sequence=2), 0, topic_id=topic_id))
