"""Listing offsets: the ends of a partition, moments in it, and times that are none."""

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
from tests.contract.conversations.records import AT, batch, fetching, filled, listing, made
from tests.contract.conversations.talking import Talk

_SPECIAL = (-1, -2, -3, -4, -5, -6, -7, -99)


@conversation(vary=ListOffsetsRequest)
def the_times_that_are_none_mean_the_ends(talk: Talk) -> None:
    t, _ = filled(talk, batch("x", "y"), batch("z"))
    a = talk.speaker("a")

    for timestamp in _SPECIAL:
        a.ask(listing(t, timestamp))


@conversation(vary=ListOffsetsRequest)
def an_empty_partition_has_its_ends_in_one_place(talk: Talk) -> None:
    t, _ = made(talk)
    a = talk.speaker("a")

    for timestamp in (*_SPECIAL, 0, AT):
        a.ask(listing(t, timestamp))


@conversation(vary=ListOffsetsRequest)
def a_moment_finds_the_first_record_that_is_not_older(talk: Talk) -> None:
    t, _ = filled(talk, batch("x", at=AT), batch("y", at=AT + 10), batch("z", at=AT + 5))
    a = talk.speaker("a")

    for timestamp in (0, AT - 1, AT, AT + 1, AT + 10, AT + 11, 2**63 - 1):
        a.ask(listing(t, timestamp))


@conversation(vary=ListOffsetsRequest, since=7)
def the_newest_time_need_not_be_the_last_record(talk: Talk) -> None:
    t, _ = filled(talk, batch("x", at=AT), batch("y", at=AT + 10), batch("z", at=AT + 10))

    talk.speaker("a").ask(listing(t, -3))


@conversation(vary=ListOffsetsRequest, since=2)
def a_committed_reader_sees_the_same_ends(talk: Talk) -> None:
    t, _ = filled(talk, batch("x", at=AT), batch("y", at=AT + 10))
    a = talk.speaker("a")

    for timestamp in (-1, -2, AT, AT + 10, AT + 11):
        a.ask(listing(t, timestamp, isolation_level=1))


@conversation(vary=ListOffsetsRequest)
def what_does_not_exist_has_no_offsets(talk: Talk) -> None:
    t, _ = made(talk)
    a = talk.speaker("a")

    a.ask(listing(Topic(talk.name("unknown")), -1))
    a.ask(listing(t, -1, 0, 9, -1))
    a.ask(listing(t, -1, topics=()))
    a.ask(listing(Topic(""), -1))


@conversation(vary=ListOffsetsRequest)
def a_partition_that_is_named_twice_is_refused(talk: Talk) -> None:
    t, _ = made(talk, partitions=2)
    a = talk.speaker("a")

    a.ask(listing(t, -1, 0, 0, 1))
    asked = (ListOffsetsPartition(partition_index=Partition(0), timestamp=AT),)
    topics = (ListOffsetsTopic(name=t, partitions=asked),) * 2
    a.ask(listing(t, -1, topics=topics))


@conversation(vary=ListOffsetsRequest, since=4)
def a_reader_of_another_epoch_is_told(talk: Talk) -> None:
    t, _ = filled(talk, batch("x"))
    a = talk.speaker("a")

    for epoch in (0, 1, 99):
        a.ask(listing(t, -1, epoch=epoch))


@conversation(vary=ListOffsetsRequest)
def whoever_debugs_sees_the_same_ends(talk: Talk) -> None:
    t, _ = filled(talk, batch("x"))

    talk.speaker("a").ask(listing(t, -1, replica_id=BrokerId(-2)))


# Epochs


def epochs(t: Topic, *asked: tuple[int, int, int]) -> OffsetForLeaderEpochRequest:
    """By partition: the epoch that is believed to be current, and the one that is asked about."""
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
def an_epoch_ends_where_its_records_do(talk: Talk) -> None:
    t, _ = filled(talk, batch("x", "y"))
    a = talk.speaker("a")

    for current, epoch in ((-1, 0), (0, 0), (0, 1), (0, -1), (1, 0), (0, 99)):
        a.ask(epochs(t, (0, current, epoch)))


@conversation(vary=OffsetForLeaderEpochRequest)
def an_empty_partition_has_an_epoch_already(talk: Talk) -> None:
    t, _ = made(talk)
    a = talk.speaker("a")

    for epoch in (0, 1, -1):
        a.ask(epochs(t, (0, -1, epoch)))


@conversation(vary=OffsetForLeaderEpochRequest)
def what_does_not_exist_has_no_epochs(talk: Talk) -> None:
    t, _ = made(talk)
    a = talk.speaker("a")

    a.ask(epochs(t, (0, -1, 0), (9, -1, 0)))
    a.ask(epochs(Topic(talk.name("unknown")), (0, -1, 0)))
    a.ask(OffsetForLeaderEpochRequest(replica_id=BrokerId(-1)))


# Deleting records


def deleting(t: Topic, *asked: tuple[int, int]) -> DeleteRecordsRequest:
    partitions = tuple(
        DeleteRecordsPartition(partition_index=Partition(partition), offset=Offset(offset))
        for partition, offset in asked
    )
    return DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name=t, partitions=partitions),), timeout_ms=Millis(5000)
    )


@conversation(vary=DeleteRecordsRequest)
def records_before_an_offset_are_deleted(talk: Talk) -> None:
    t, topic_id = filled(talk, batch("x", "y"), batch("z"))
    a = talk.speaker("a")

    for offset in (1, 0, 1, 2, -1):
        a.ask(deleting(t, (0, offset)))
        a.ask(listing(t, -2))
        a.ask(fetching(t, 1, topic_id=topic_id))


@conversation(vary=DeleteRecordsRequest)
def records_that_are_not_there_cannot_be_deleted(talk: Talk) -> None:
    t, _ = filled(talk, batch("x"))
    a = talk.speaker("a")

    a.ask(deleting(t, (0, 2)))
    a.ask(deleting(t, (0, -2)))
    a.ask(deleting(t, (0, 0), (9, 0)))
    a.ask(deleting(Topic(talk.name("unknown")), (0, 0)))
    a.ask(DeleteRecordsRequest(timeout_ms=Millis(5000)))


@conversation(vary=DeleteRecordsRequest)
def records_of_a_compacted_topic_stay(talk: Talk) -> None:
    t, _ = filled(talk, batch("x"), cleanup_policy="compact")

    talk.speaker("a").ask(deleting(t, (0, 1)))


@conversation(vary=DeleteRecordsRequest)
def records_of_the_groups_own_topic_stay(talk: Talk) -> None:
    talk.speaker("a").ask(deleting(Topic("__consumer_offsets"), (0, 0)))


@conversation(vary=DeleteRecordsRequest)
def records_of_a_topic_that_keeps_everything_may_be_deleted(talk: Talk) -> None:
    t, _ = filled(talk, batch("x"), cleanup_policy="")

    talk.speaker("a").ask(deleting(t, (0, 1)))
