"""kohort topics describe."""

from typing import Any

import typer

from kohort.admin.offsets import list_offsets
from kohort.admin.topics import (
    TopicConfigEntry,
    TopicDescription,
    TopicPartitionInfo,
    describe_config,
    get_topics,
    partition_sizes,
)
from kohort.cli.cluster_options import TIMEOUT_MS, AsJson, Bootstrap, Config, Timeout, connect
from kohort.cli.tables import print_json, print_table
from kohort.cli.topics.options import ExistingTopics
from kohort.types import Offset, Topic, TopicPartition, value


@value
class _LogMetadata:
    """Log start offset, log end offset and size of partitions, as far as known."""

    starts: dict[TopicPartition, Offset]
    ends: dict[TopicPartition, Offset]
    sizes: dict[TopicPartition, int]


def run(
    topics: ExistingTopics,
    *,
    bootstrap: Bootstrap,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Show the partitions of topics and the settings they override.

    \b
      kohort topics describe orders
    """
    with connect(bootstrap, command_config, timeout) as cluster:
        found = get_topics(cluster, [Topic(each) for each in topics])
        # No broker can answer for a partition without a leader.
        partitions = [
            TopicPartition(topic, each.partition)
            for topic, description in found.items()
            for each in description.partitions
            if each.leader is not None
        ]
        logs = _LogMetadata(
            starts=list_offsets(cluster, partitions, "earliest"),
            ends=list_offsets(cluster, partitions, "latest"),
            sizes=partition_sizes(cluster, found),
        )
        overrides = {
            topic: [each for each in describe_config(cluster, topic) if not each.is_default]
            for topic in found
        }
    if as_json:
        print_json([_topic_json(each, overrides[topic], logs) for topic, each in found.items()])
        return
    print_table(
        ("TOPIC", "PARTITION", "LEADER", "REPLICAS", "ISR", "START", "END", "BYTES"),
        [
            _partition_row(topic, each, logs)
            for topic, description in found.items()
            for each in description.partitions
        ],
    )
    if any(overrides.values()):
        typer.echo()
        rows = [(topic, each.name, each.content) for topic in found for each in overrides[topic]]
        print_table(("TOPIC", "SETTING", "VALUE"), rows)


def _partition_row(
    topic: Topic, each: TopicPartitionInfo, logs: _LogMetadata
) -> tuple[object, ...]:
    partition = TopicPartition(topic, each.partition)
    return (
        topic,
        each.partition,
        each.leader,
        ",".join(map(str, each.replicas)),
        ",".join(map(str, each.in_sync)),
        logs.starts.get(partition),
        logs.ends.get(partition),
        logs.sizes.get(partition),
    )


def _topic_json(
    topic: TopicDescription, overrides: list[TopicConfigEntry], logs: _LogMetadata
) -> dict[str, Any]:
    return {
        "topic": topic.topic,
        "internal": topic.is_internal,
        "settings": {each.name: each.content for each in overrides},
        "partitions": [_partition_json(topic.topic, each, logs) for each in topic.partitions],
    }


def _partition_json(topic: Topic, each: TopicPartitionInfo, logs: _LogMetadata) -> dict[str, Any]:
    partition = TopicPartition(topic, each.partition)
    return {
        "partition": each.partition,
        "leader": each.leader,
        "replicas": list(each.replicas),
        "isr": list(each.in_sync),
        "start": logs.starts.get(partition),
        "end": logs.ends.get(partition),
        "bytes": logs.sizes.get(partition),
    }
