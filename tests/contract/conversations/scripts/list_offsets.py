"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

from kohort.types import BrokerId, Millis, Offset, Partition, Topic
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kohort.wire.api.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kohort.wire.api.k23_offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.records import (
    AT,
    batch,
    create_filled_topic,
    create_topic,
    fetch_request,
    list_offsets_request,
)
from tests.contract.conversations.session import Session

_SPECIAL = (-1, -2, -3, -4, -5, -6, -7, -99)


@conversation(vary=ListOffsetsRequest)
def special_timestamps_return_the_log_ends(session: Session) -> None:
    t, _ = create_filled_topic(session, batch("x", "y"), batch("z"))
    a = session.client("a")

    for timestamp in _SPECIAL:
        a.ask(list_offsets_request(t, timestamp))


@conversation(vary=ListOffsetsRequest)
def an_empty_partition_has_equal_beginning_and_end_offsets(session: Session) -> None:
    t, _ = create_topic(session)
    a = session.client("a")

    for timestamp in (*_SPECIAL, 0, AT):
        a.ask(list_offsets_request(t, timestamp))


@conversation(vary=ListOffsetsRequest)
def a_timestamp_finds_the_first_record_that_is_not_older(session: Session) -> None:
    t, _ = create_filled_topic(
        session, batch("x", at=AT), batch("y", at=AT + 10), batch("z", at=AT + 5)
    )
    a = session.client("a")

    for timestamp in (0, AT - 1, AT, AT + 1, AT + 10, AT + 11, 2**63 - 1):
        a.ask(list_offsets_request(t, timestamp))


@conversation(vary=ListOffsetsRequest, since=7)
def the_greatest_timestamp_may_not_be_the_last_record(session: Session) -> None:
    t, _ = create_filled_topic(
        session, batch("x", at=AT), batch("y", at=AT + 10), batch("z", at=AT + 10)
    )

    session.client("a").ask(list_offsets_request(t, -3))


@conversation(vary=ListOffsetsRequest, since=2)
def read_committed_returns_the_same_log_ends(session: Session) -> None:
    t, _ = create_filled_topic(session, batch("x", at=AT), batch("y", at=AT + 10))
    a = session.client("a")

    for timestamp in (-1, -2, AT, AT + 10, AT + 11):
        a.ask(list_offsets_request(t, timestamp, isolation_level=1))


@conversation(vary=ListOffsetsRequest)
def unknown_partitions_have_no_offsets(session: Session) -> None:
    t, _ = create_topic(session)
    a = session.client("a")

    a.ask(list_offsets_request(Topic(session.name("unknown")), -1))
    a.ask(list_offsets_request(t, -1, 0, 9, -1))
    a.ask(list_offsets_request(t, -1, topics=()))
    a.ask(list_offsets_request(Topic(""), -1))


@conversation(vary=ListOffsetsRequest)
def a_partition_that_is_named_twice_is_refused(session: Session) -> None:
    t, _ = create_topic(session, partitions=2)
    a = session.client("a")

    a.ask(list_offsets_request(t, -1, 0, 0, 1))
    asked = (ListOffsetsPartition(partition_index=Partition(0), timestamp=AT),)
    topics = (ListOffsetsTopic(name=t, partitions=asked),) * 2
    a.ask(list_offsets_request(t, -1, topics=topics))


@conversation(vary=ListOffsetsRequest, since=4)
def a_different_leader_epoch_is_refused(session: Session) -> None:
    t, _ = create_filled_topic(session, batch("x"))
    a = session.client("a")

    for epoch in (0, 1, 99):
        a.ask(list_offsets_request(t, -1, epoch=epoch))


@conversation(vary=ListOffsetsRequest)
def a_debugging_replica_id_returns_the_same_log_ends(session: Session) -> None:
    t, _ = create_filled_topic(session, batch("x"))

    session.client("a").ask(list_offsets_request(t, -1, replica_id=BrokerId(-2)))


# Epochs


def epochs(t: Topic, *asked: tuple[int, int, int]) -> OffsetForLeaderEpochRequest:
    """For each partition: its number, the current and the requested leader epoch."""
    partitions = tuple(
        OffsetForLeaderPartition(
            partition=Partition(partition), current_leader_epoch=current, leader_epoch=epoch
        )
        for partition, current, epoch in asked
    )
    return OffsetForLeaderEpochRequest(
        replica_id=BrokerId(-1), topics=(OffsetForLeaderTopic(topic=t, partitions=partitions),)
    )


@conversation(vary=OffsetForLeaderEpochRequest)
def the_end_offset_of_an_epoch_is_the_end_of_its_records(session: Session) -> None:
    t, _ = create_filled_topic(session, batch("x", "y"))
    a = session.client("a")

    for current, epoch in ((-1, 0), (0, 0), (0, 1), (0, -1), (1, 0), (0, 99)):
        a.ask(epochs(t, (0, current, epoch)))


@conversation(vary=OffsetForLeaderEpochRequest)
def an_empty_partition_has_a_leader_epoch(session: Session) -> None:
    t, _ = create_topic(session)
    a = session.client("a")

    for epoch in (0, 1, -1):
        a.ask(epochs(t, (0, -1, epoch)))


@conversation(vary=OffsetForLeaderEpochRequest)
def unknown_partitions_have_no_epochs(session: Session) -> None:
    t, _ = create_topic(session)
    a = session.client("a")

    a.ask(epochs(t, (0, -1, 0), (9, -1, 0)))
    a.ask(epochs(Topic(session.name("unknown")), (0, -1, 0)))
    a.ask(OffsetForLeaderEpochRequest(replica_id=BrokerId(-1)))


# Deleting records


def delete_request(t: Topic, *asked: tuple[int, int]) -> DeleteRecordsRequest:
    partitions = tuple(
        DeleteRecordsPartition(partition_index=Partition(partition), offset=Offset(offset))
        for partition, offset in asked
    )
    return DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name=t, partitions=partitions),), timeout_ms=Millis(5000)
    )


@conversation(vary=DeleteRecordsRequest)
def records_before_an_offset_are_deleted(session: Session) -> None:
    t, topic_id = create_filled_topic(session, batch("x", "y"), batch("z"))
    a = session.client("a")

    for offset in (1, 0, 1, 2, -1):
        a.ask(delete_request(t, (0, offset)))
        a.ask(list_offsets_request(t, -2))
        a.ask(fetch_request(t, 1, topic_id=topic_id))


@conversation(vary=DeleteRecordsRequest)
def deleting_records_out_of_range_is_refused(session: Session) -> None:
    t, _ = create_filled_topic(session, batch("x"))
    a = session.client("a")

    a.ask(delete_request(t, (0, 2)))
    a.ask(delete_request(t, (0, -2)))
    a.ask(delete_request(t, (0, 0), (9, 0)))
    a.ask(delete_request(Topic(session.name("unknown")), (0, 0)))
    a.ask(DeleteRecordsRequest(timeout_ms=Millis(5000)))


@conversation(vary=DeleteRecordsRequest)
def records_of_a_compacted_topic_cannot_be_deleted(session: Session) -> None:
    t, _ = create_filled_topic(session, batch("x"), cleanup_policy="compact")

    session.client("a").ask(delete_request(t, (0, 1)))


@conversation(vary=DeleteRecordsRequest)
def records_of_the_offsets_topic_cannot_be_deleted(session: Session) -> None:
    session.client("a").ask(delete_request(Topic("__consumer_offsets"), (0, 0)))


@conversation(vary=DeleteRecordsRequest)
def records_of_a_topic_without_retention_can_be_deleted(session: Session) -> None:
    t, _ = create_filled_topic(session, batch("x"), cleanup_policy="")

    session.client("a").ask(delete_request(t, (0, 1)))
