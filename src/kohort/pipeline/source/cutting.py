"""Where a stream's next batch begins and ends in each partition. Pure."""

from collections.abc import Callable, Collection, Mapping

from kohort.client.topic_partition import TopicPartition
from kohort.pipeline.errors import DataLost
from kohort.pipeline.source.ranges import Range, limit
from kohort.pipeline.source.stream_offset import StreamOffset
from kohort.types import Offset, value

Offsets = Mapping[TopicPartition, Offset]


@value
class Loss:
    """Offsets that cannot be read any more."""

    partition: TopicPartition
    first: Offset
    stop: Offset


def settle_claims(
    fresh: Collection[TopicPartition], checkpointed: Offsets, committed: Offsets, *, is_shared: bool
) -> tuple[dict[TopicPartition, Offset], list[Loss]]:
    """Where to go on with what has just come, and what others in the group have read meanwhile.

    The checkpoint wins over the group, whose offset may lag behind. Only where the group shares
    its partitions may it be ahead: then another member had this one, and read it up to there.
    """
    claims: dict[TopicPartition, Offset] = {}
    read_by_others: list[Loss] = []
    for partition in fresh:
        mine, theirs = checkpointed.get(partition), committed.get(partition)
        if mine is None:
            if theirs is not None:
                claims[partition] = theirs
        elif is_shared and theirs is not None and theirs > mine:
            claims[partition] = theirs
            read_by_others.append(Loss(partition=partition, first=mine, stop=theirs))
        else:
            claims[partition] = mine
    return claims, read_by_others


def mend(
    standing: Offsets, beginnings: Offsets, ends: Offsets
) -> tuple[dict[TopicPartition, Offset], list[Loss]]:
    """Positions within what the brokers have, and what is lost.

    A position after the end is of a topic that was made anew, or a log that was cut: what is
    there now is read from its beginning.
    """
    mended: dict[TopicPartition, Offset] = {}
    losses: list[Loss] = []
    for partition, position in standing.items():
        beginning, end = beginnings.get(partition), ends.get(partition)
        mended[partition] = position
        if beginning is None or end is None:
            continue
        if position < beginning:
            losses.append(Loss(partition=partition, first=position, stop=beginning))
            mended[partition] = beginning
        elif position > end:
            losses.append(Loss(partition=partition, first=end, stop=position))
            mended[partition] = beginning
    return mended, losses


def cut(
    start: StreamOffset, standing: Offsets, ends: Offsets, rows_max: int | None
) -> StreamOffset:
    """The offset after the next batch; `start` itself if there is nothing to read or to note.

    What the query holds is noted at once, even if it has nothing to read: so that the checkpoint
    knows from where.
    """
    ranges = [
        Range(partition=partition, first=first, stop=max(first, ends.get(partition, first)))
        for partition, first in sorted(standing.items())
    ]
    if rows_max is not None:
        ranges = limit(ranges, rows_max)
    positions = {each.partition: each.stop for each in ranges}
    begins = {
        each.partition: each.first
        for each in ranges
        if start.positions.get(each.partition) != each.first
    }
    if positions == start.positions and not begins:
        return start
    return StreamOffset(positions=positions, begins=begins)


def refuse_loss(losses: list[Loss], *, fail: bool, warn: Callable[[str], None]) -> None:
    for loss in losses:
        topic, number = loss.partition
        what = (
            f"offsets {loss.first} to {loss.stop - 1} of {topic}-{number} are gone: deleted by "
            "retention or by somebody, or the topic was made anew"
        )
        if fail:
            raise DataLost(f"{what}; failOnDataLoss=false goes on without them")
        warn(what)
