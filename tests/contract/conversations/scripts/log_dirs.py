"""Log directories: where partitions lie, and how large they are."""

from typing import Any

from kohort.types import Partition, Topic
from kohort.wire.api.k35_describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from tests.contract.conversations.conversation import conversation
from tests.contract.conversations.records import batch, filled, made
from tests.contract.conversations.talking import Talk, narrowed

VOLUME = "the size of the volume is not told"


def describing(*topics: tuple[Topic, tuple[int, ...]]) -> DescribeLogDirsRequest:
    return DescribeLogDirsRequest(
        topics=tuple(
            DescribableLogDirTopic(topic=name, partitions=tuple(map(Partition, partitions)))
            for name, partitions in topics
        )
    )


def ask(talk: Talk, request: DescribeLogDirsRequest, **words: Any) -> None:
    speaker = talk.speaker("a")
    if talk.version_of(DescribeLogDirsRequest) < 4:
        speaker.ask(request, **words)
        return
    with talk.deviates(VOLUME, "*.total_bytes", "*.usable_bytes"):
        speaker.ask(request, **words)


@conversation(vary=DescribeLogDirsRequest)
def a_partition_is_as_large_as_its_batches(talk: Talk) -> None:
    t, _ = filled(talk, batch("x"), batch("y" * 100))

    ask(talk, describing((t, (0,))))


@conversation(vary=DescribeLogDirsRequest)
def only_what_is_asked_for_is_told(talk: Talk) -> None:
    t, _ = made(talk, partitions=3)

    ask(talk, describing((t, (2, 0))))


@conversation(vary=DescribeLogDirsRequest)
def what_does_not_exist_is_left_out(talk: Talk) -> None:
    t, _ = made(talk)

    ask(talk, describing((t, (0, 9)), (Topic(talk.name("unknown")), (0,))))


@conversation(vary=DescribeLogDirsRequest)
def nothing_may_be_asked_for(talk: Talk) -> None:
    ask(talk, describing())


@conversation(vary=DescribeLogDirsRequest)
def everything_is_told_to_who_asks_for_everything(talk: Talk) -> None:
    filled(talk, batch("x"))
    mark = talk.name("")

    def ours(answer: DescribeLogDirsResponse) -> DescribeLogDirsResponse:
        (directory,) = answer.results
        topics = tuple(each for each in directory.topics if each.name.endswith(mark))
        return narrowed(answer, results=(narrowed(directory, topics=topics),))

    ask(talk, DescribeLogDirsRequest(topics=None), through=ours)
