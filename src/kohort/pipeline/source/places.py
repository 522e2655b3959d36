"""Where places are that were told by a word, a time or a number: brokers are asked."""

import re
from collections.abc import Collection

from kohort.client.consumer import Consumer
from kohort.client.topic_partition import TopicPartition
from kohort.pipeline.errors import BadSourceOption, NoSuchTopic
from kohort.pipeline.source.options import (
    EARLIEST_OFFSET,
    LATEST_OFFSET,
    Reset,
    SourceOptions,
    Where,
    Word,
)
from kohort.types import Offset, Partition, Topic

Places = dict[TopicPartition, Offset]


def find_places(
    consumer: Consumer, where: Where, partitions: Collection[TopicPartition], reset: Reset
) -> Places:
    """The offset of each; `reset` is for those of which the group has committed nothing."""
    if not partitions:
        return {}
    match where.word:
        case Word.EARLIEST:
            return consumer.beginning_offsets(partitions)
        case Word.LATEST:
            return consumer.end_offsets(partitions)
        case Word.COMMITTED:
            return _committed(consumer, partitions, reset)
        case Word.OFFSETS:
            return _numbered(consumer, where, partitions)
        case Word.TIMES:
            return _timed(consumer, where, partitions)


def _committed(consumer: Consumer, partitions: Collection[TopicPartition], reset: Reset) -> Places:
    found = consumer.committed(partitions)
    places = {each: told.offset for each, told in found.items() if told is not None}
    missing = [each for each in partitions if each not in places]
    return places | find_unseen(consumer, missing, reset)


def find_unseen(consumer: Consumer, partitions: Collection[TopicPartition], reset: Reset) -> Places:
    """Where to begin what the group knows nothing of."""
    if not partitions:
        return {}
    if reset is Reset.NONE:
        raise BadSourceOption(
            f"the group has committed nothing for {_shown(partitions)}, and auto.offset.reset is "
            "none: say earliest or latest, or give startingOffsets"
        )
    is_early = reset is Reset.EARLIEST
    return (consumer.beginning_offsets if is_early else consumer.end_offsets)(partitions)


def _numbered(consumer: Consumer, where: Where, partitions: Collection[TopicPartition]) -> Places:
    missing = [each for each in partitions if each not in where.numbers]
    if missing:
        raise BadSourceOption(f"the offsets that were given leave out {_shown(missing)}")
    wanted = {each: where.numbers[each] for each in partitions}
    begins = [each for each, number in wanted.items() if number == EARLIEST_OFFSET]
    ends = [each for each, number in wanted.items() if number == LATEST_OFFSET]
    places = {each: Offset(number) for each, number in wanted.items() if number >= 0}
    places |= consumer.beginning_offsets(begins) if begins else {}
    places |= consumer.end_offsets(ends) if ends else {}
    return places


def _timed(consumer: Consumer, where: Where, partitions: Collection[TopicPartition]) -> Places:
    times = (
        dict.fromkeys(partitions, where.time)
        if where.time is not None
        else {each: where.numbers[each] for each in partitions if each in where.numbers}
    )
    missing = [each for each in partitions if each not in times]
    if missing:
        raise BadSourceOption(f"the times that were given leave out {_shown(missing)}")
    found = consumer.offsets_for_times({each: int(time) for each, time in times.items()})
    places = {each: told.offset for each, told in found.items() if told is not None}
    late = [each for each in partitions if each not in places]
    if late and not where.is_latest_without_match:
        raise BadSourceOption(
            f"{_shown(late)} has no record at or after the time that was given; with "
            "startingOffsetsByTimestampStrategy=latest it is read from its end"
        )
    return places | (consumer.end_offsets(late) if late else {})


def find_partitions(consumer: Consumer, options: SourceOptions) -> frozenset[TopicPartition]:
    """All that the query may read, as the brokers have them now."""
    if options.assigned:
        by_topic = {topic: consumer.partitions_for(topic) for topic, _ in options.assigned}
        missing = [each for each in options.assigned if each.partition not in by_topic[each.topic]]
        if missing:
            raise NoSuchTopic(f"{_shown(missing)} does not exist")
        return frozenset(options.assigned)
    topics = options.topics
    if options.pattern is not None:
        topics = find_matches(consumer, options.pattern)
    return frozenset(
        TopicPartition(topic, number) for topic in topics for number in _numbers_of(consumer, topic)
    )


def _numbers_of(consumer: Consumer, topic: Topic) -> frozenset[Partition]:
    numbers = consumer.partitions_for(topic)
    if not numbers:
        raise NoSuchTopic(f"topic {topic!r} does not exist: create it, or mend its name")
    return numbers


def find_matches(consumer: Consumer, pattern: str) -> tuple[Topic, ...]:
    return tuple(sorted(name for name in consumer.topics() if re.match(pattern, name)))


def _shown(partitions: Collection[TopicPartition]) -> str:
    names = [f"{topic}-{number}" for topic, number in sorted(partitions)]
    rest = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(names[:5]) + rest
