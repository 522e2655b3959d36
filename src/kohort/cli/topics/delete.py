"""kohort topics delete."""

from typing import Annotated

import typer

from kohort.admin.errors import AdminError, NoSuchTopic
from kohort.admin.topics import delete_topic
from kohort.cli.cluster_options import TIMEOUT_MS, Bootstrap, Config, Timeout, connect
from kohort.cli.messages import fail_if_any, print_stderr
from kohort.cli.topics.options import ExistingTopics
from kohort.types import Topic

_IfExists = Annotated[
    bool, typer.Option("--if-exists", help="Do nothing if a topic does not exist.")
]


def run(
    topics: ExistingTopics,
    *,
    bootstrap: Bootstrap,
    if_exists: _IfExists = False,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
) -> None:
    """Delete topics and all their records. This cannot be undone.

    \b
      kohort topics delete orders
    """
    errors: list[AdminError] = []
    with connect(bootstrap, command_config, timeout) as cluster:
        for topic in topics:
            try:
                delete_topic(cluster, Topic(topic))
                typer.echo(f"topic {topic!r} deleted")
            except AdminError as error:
                if isinstance(error, NoSuchTopic) and if_exists:
                    typer.echo(f"topic {topic!r} does not exist")
                    continue
                print_stderr(error)
                errors.append(error)
    fail_if_any(errors)
