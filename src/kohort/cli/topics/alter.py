"""kohort topics alter."""

from typing import Annotated

import typer

from kohort.admin.topics import add_partitions, alter_config
from kohort.cli.cluster_options import (
    TIMEOUT_MS,
    Bootstrap,
    Config,
    Timeout,
    connect,
    usage_error,
)
from kohort.cli.topics.options import ExistingTopic, PartitionCount, Settings, read_settings
from kohort.types import Topic

_DeletedSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--delete-config",
        metavar="NAME",
        help="Remove this override; use the cluster default. May be repeated.",
    ),
]


def run(
    topic: ExistingTopic,
    *,
    bootstrap: Bootstrap,
    partitions: PartitionCount = None,
    config: Settings = None,
    delete_config: _DeletedSettings = None,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
) -> None:
    """Add partitions to a topic, or change its settings.

    After partitions are added, new records of a key may go to another partition than before.

    \b
      kohort topics alter orders --partitions 12
      kohort topics alter orders --config retention.ms=86400000
      kohort topics alter orders --delete-config retention.ms
    """
    changes: dict[str, str | None] = {**read_settings(config)}
    for name in delete_config or ():
        if name in changes:
            usage_error(f"{name} is given to both --config and --delete-config")
        changes[name] = None
    if partitions is None and not changes:
        usage_error("give at least one of --partitions, --config and --delete-config")
    with connect(bootstrap, command_config, timeout) as cluster:
        # Settings first: they may be rejected, and added partitions cannot be removed.
        if changes:
            alter_config(cluster, Topic(topic), changes)
        if partitions is not None:
            add_partitions(cluster, Topic(topic), partitions)
    typer.echo(f"topic {topic!r} altered")
