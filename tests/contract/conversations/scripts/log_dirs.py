"""DescribeLogDirs: log directories and the sizes of partitions."""

from typing import Any

from kohort.types import Partition, Topic
from kohort.wire.api.k35_describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.records import batch, create_filled_topic, create_topic
from tests.contract.conversations.session import Session, narrowed

VOLUME = "the size of the volume is not returned"


def describe_request(*topics: tuple[Topic, tuple[int, ...]]) -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(
        topics=tuple(
            DescribableLogDirTopic(topic=name, partitions=tuple(map(Partition, partitions)))
            for name, partitions in topics
        )
    )


def ask(session: Session, request: DescribeLogDirsRequest, **fields: Any) -> None:
    client = session.client("a")
    if session.version_of(DescribeLogDirsRequest) < 4:
        client.ask(request, **fields)
        return
    with session.deviates(VOLUME, "*.total_bytes", "*.usable_bytes"):
        client.ask(request, **fields)


@conversation(vary=DescribeLogDirsRequest)
def the_size_of_a_partition_is_the_size_of_its_batches(session: Session) -> None:
    t, _ = create_filled_topic(session, batch("x"), batch("y" * 100))

    ask(session, describe_request((t, (0,))))


@conversation(vary=DescribeLogDirsRequest)
def only_requested_partitions_are_described(session: Session) -> None:
    t, _ = create_topic(session, partitions=3)

    ask(session, describe_request((t, (2, 0))))


@conversation(vary=DescribeLogDirsRequest)
def unknown_partitions_are_left_out(session: Session) -> None:
    t, _ = create_topic(session)

    ask(session, describe_request((t, (0, 9)), (Topic(session.name("unknown")), (0,))))


@conversation(vary=DescribeLogDirsRequest)
def an_empty_request_is_allowed(session: Session) -> None:
    ask(session, describe_request())


@conversation(vary=DescribeLogDirsRequest)
def all_partitions_are_described_on_request(session: Session) -> None:
    create_filled_topic(session, batch("x"))
    mark = session.name("")

    def ours(answer: DescribeLogDirsResponse) -> DescribeLogDirsResponse:
        (directory,) = answer.results
        topics = tuple(each for each in directory.topics if each.name.endswith(mark))
        return narrowed(answer, results=(narrowed(directory, topics=topics),))

    ask(session, DescribeLogDirsRequest(topics=None), transform=ours)
