"""kohort topics list."""

from typing import Annotated

import typer

from kohort.admin.topics import TopicDescription, list_topics, partition_sizes
from kohort.cli.cluster_options import TIMEOUT_MS, AsJson, Bootstrap, Config, Timeout, connect
from kohort.cli.messages import print_stderr
from kohort.cli.tables import print_json, print_table
from kohort.types import TopicPartition

_ExcludeInternal = Annotated[
    bool, typer.Option("--exclude-internal", help="Omit topics whose names begin with __.")
]


def run(
    *,
    bootstrap: Bootstrap,
    exclude_internal: _ExcludeInternal = False,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """List topics with partition count, replication factor and size.

    \b
      kohort topics list
    """
    with connect(bootstrap, command_config, timeout) as cluster:
        topics = [
            each for each in list_topics(cluster) if not (exclude_internal and each.is_internal)
        ]
        sizes = partition_sizes(cluster, [each.topic for each in topics])
    rows = [
        (each.topic, len(each.partitions), each.replication, _total_size(sizes, each))
        for each in topics
    ]
    if as_json:
        names = ("topic", "partitions", "replication_factor", "bytes")
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    print_table(("TOPIC", "#PARTITIONS", "#REPLICAS", "BYTES"), rows)
    if not rows:
        print_stderr("there are no topics")


def _total_size(sizes: dict[TopicPartition, int], topic: TopicDescription) -> int | None:
    known = [
        sizes[partition]
        for each in topic.partitions
        if (partition := TopicPartition(topic.topic, each.partition)) in sizes
    ]
    return sum(known) if known else None
