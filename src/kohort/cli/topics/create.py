"""kohort topics create."""

from typing import Annotated

import typer

from kohort.admin.errors import TopicExists
from kohort.admin.topics import create_topic
from kohort.cli.cluster_options import TIMEOUT_MS, Bootstrap, Config, Timeout, connect
from kohort.cli.topics.options import PartitionCount, Settings, read_settings
from kohort.types import Topic

_NewTopic = Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")]
_ReplicationFactor = Annotated[
    int | None,
    typer.Option("--replication-factor", metavar="N", min=1, help="Number of replicas."),
]
_IfNotExists = Annotated[
    bool, typer.Option("--if-not-exists", help="Do nothing if the topic already exists.")
]


def run(
    topic: _NewTopic,
    *,
    bootstrap: Bootstrap,
    partitions: PartitionCount = None,
    replication_factor: _ReplicationFactor = None,
    config: Settings = None,
    if_not_exists: _IfNotExists = False,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
) -> None:
    """Create a topic.

    The cluster's defaults apply to everything that is not given.

    \b
      kohort topics create orders --partitions 6
      kohort topics create prices --config cleanup.policy=compact
    """
    settings = read_settings(config)
    with connect(bootstrap, command_config, timeout) as cluster:
        try:
            create_topic(
                cluster,
                Topic(topic),
                partitions=partitions,
                replication=replication_factor,
                settings=settings,
            )
        except TopicExists:
            if not if_not_exists:
                raise
            typer.echo(f"topic {topic!r} already exists")
            return
    typer.echo(f"topic {topic!r} created")
