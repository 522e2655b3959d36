"""Offset commits: metadata size, columnar commits, and failed appends."""

from collections.abc import Callable

import pytest

from kohort.coordinator.commands import (
    CommitOffsets,
    CommitTransactionOffsets,
    DeleteGroups,
    DeleteOffsets,
    EndTransaction,
    FetchManyOffsets,
    FetchOffsets,
    OffsetColumns,
    OffsetToCommit,
    PartitionColumns,
    Request,
    RequestedTopic,
    Shutdown,
    Ticket,
)
from kohort.coordinator.events import AppendFailed
from kohort.coordinator.records import OffsetCommitted
from kohort.coordinator.replies import CommitAnswered, RequestRefused
from kohort.types import (
    ZERO_UUID,
    ErrorCode,
    GroupId,
    Millis,
    Offset,
    Partition,
    ProducerEpoch,
    ProducerId,
    Topic,
    Uuid,
)
from tests.coordinator.scenario import GROUP, TOPIC, Scenario

SHOWS = (
    "commit.metadata-too-large",
    "commit.metadata-counts-characters",
    "commit.metadata-null",
    "commit.store-fails",
)

OTHER = GroupId("other")


def offset(metadata: str | None = "") -> OffsetToCommit:
    return OffsetToCommit(topic=TOPIC, partition=Partition(0), offset=Offset(43), metadata=metadata)


def commit(ticket: Ticket) -> Request:
    return CommitOffsets(ticket=ticket, group_id=GROUP, offsets=(offset(),))


def commit_to_a_new_group(ticket: Ticket) -> Request:
    return CommitOffsets(ticket=ticket, group_id=OTHER, offsets=(offset(),))


def commit_in_transaction(ticket: Ticket) -> Request:
    return CommitTransactionOffsets(
        ticket=ticket,
        group_id=OTHER,
        producer_id=ProducerId(9),
        producer_epoch=ProducerEpoch(0),
        offsets=(offset(),),
    )


def end_transaction(ticket: Ticket) -> Request:
    return EndTransaction(ticket=ticket, producer_id=ProducerId(9), is_commit=True)


def delete_offsets(ticket: Ticket) -> Request:
    topics = (RequestedTopic(topic=Topic(TOPIC), partitions=(Partition(0),)),)
    return DeleteOffsets(ticket=ticket, group_id=GROUP, topics=topics)


def delete_groups(ticket: Ticket) -> Request:
    return DeleteGroups(ticket=ticket, group_ids=(GROUP,))


@pytest.mark.parametrize(
    ("metadata", "error"),
    [
        (None, ErrorCode.NONE),
        ("", ErrorCode.NONE),
        ("x" * 4_096, ErrorCode.NONE),
        ("x" * 4_097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("消" * 4_096, ErrorCode.NONE),
        ("消" * 4_097, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("😀" * 2_048, ErrorCode.NONE),
        ("😀" * 2_048 + "x", ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ("\ud83d" * 4_096, ErrorCode.NONE),
    ],
    ids=lambda case: f"{case[:1]}x{len(case)}" if isinstance(case, str) else None,
)
@pytest.mark.parametrize("is_transactional", [False, True])
def test_metadata_limit_counts_utf_16_units(
    metadata: str | None, error: ErrorCode, *, is_transactional: bool
) -> None:
    asked = Scenario().send(
        lambda ticket: (
            CommitTransactionOffsets(
                ticket=ticket,
                group_id=GROUP,
                producer_id=ProducerId(9),
                producer_epoch=ProducerEpoch(0),
                offsets=(offset(metadata),),
            )
            if is_transactional
            else CommitOffsets(ticket=ticket, group_id=GROUP, offsets=(offset(metadata),))
        )
    )

    (result,) = asked.expect(CommitAnswered).results
    assert result.error is error
    kept = [each.metadata for each in asked.outcome.records if isinstance(each, OffsetCommitted)]
    assert kept == ([metadata or ""] if error is ErrorCode.NONE else [])


@pytest.mark.parametrize("retention_ms", [None, Millis(1_000)])
@pytest.mark.parametrize("topics", [(TOPIC, TOPIC), (TOPIC, Topic("u"))])
@pytest.mark.parametrize("has_pending", [False, True])
def test_columnar_commit_equals_single_commits(
    topics: tuple[Topic, ...], retention_ms: Millis | None, *, has_pending: bool
) -> None:
    columns = OffsetColumns(
        partition_columns=PartitionColumns(
            topics, (Partition(0), Partition(1)), (Uuid(b"i" * 16), ZERO_UUID)
        ),
        offsets=(Offset(43), Offset(44)),
        leader_epochs=(-1, 5),
    )

    def kept_and_told(offsets: OffsetColumns | tuple[OffsetToCommit, ...]) -> object:
        scenario = Scenario()
        if has_pending:
            scenario.send(commit_in_transaction)
        asked = scenario.send(
            lambda ticket: CommitOffsets(
                ticket=ticket, group_id=OTHER, offsets=offsets, retention_ms=retention_ms
            )
        )
        return scenario.driver.coordinator.hard_state(), asked.expect(CommitAnswered).results

    assert kept_and_told(columns) == kept_and_told(tuple(columns))


@pytest.mark.parametrize("is_stopped", [False, True])
def test_fetch_of_many_groups_equals_single_fetches(*, is_stopped: bool) -> None:
    scenario = Scenario()
    scenario.send(commit)
    scenario.send(commit_to_a_new_group)
    if is_stopped:
        scenario.driver.decide(Shutdown())
    fetches = tuple(
        FetchOffsets(ticket=Ticket(number), group_id=group_id)
        for number, group_id in enumerate((GROUP, OTHER, GroupId("unheard of")), 100)
    )

    together = scenario.driver.decide(FetchManyOffsets(fetches=fetches)).replies

    assert together == [reply for each in fetches for reply in scenario.driver.decide(each).replies]
    assert [reply.ticket for reply in together] == [100, 101, 102]


@pytest.mark.parametrize(
    ("log_error", "client_error"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_FETCH_SIZE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
@pytest.mark.parametrize(
    "make",
    [
        commit,
        commit_to_a_new_group,
        commit_in_transaction,
        end_transaction,
        delete_offsets,
        delete_groups,
    ],
)
def test_failed_append_is_refused_with_a_client_error_and_changes_nothing(
    make: Callable[[Ticket], Request], log_error: ErrorCode, client_error: ErrorCode
) -> None:
    scenario = Scenario()
    scenario.commit({0: 42})
    before, kept = list(scenario.driver.coordinator.groups), list(scenario.driver.records)
    scenario.driver.append_error = log_error

    asked = scenario.send(make)

    assert asked.reply == RequestRefused(ticket=asked.ticket, error=client_error)
    assert isinstance(scenario.driver.events[-1], AppendFailed)
    assert scenario.driver.events[-1].error is log_error
    assert (list(scenario.driver.coordinator.groups), scenario.driver.records) == (before, kept)
    assert scenario.committed(0) == [42]
