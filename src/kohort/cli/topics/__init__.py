"""kohort topics: lists, describes and changes topics."""

from typing import Final

import typer

from kohort.cli.lazy_group import lazy_group

COMMANDS: Final = {
    "list": ("list:run", "List topics with partition count, replication factor and size."),
    "describe": ("describe:run", "Show the partitions of topics and the settings they override."),
    "create": ("create:run", "Create a topic."),
    "alter": ("alter:run", "Add partitions to a topic, or change its settings."),
    "delete": ("delete:run", "Delete topics and all their records. This cannot be undone."),
}

app = typer.Typer(
    name="topics",
    cls=lazy_group("kohort.cli.topics", COMMANDS),
    help="""Inspect and change topics of Kohort or Apache Kafka.

    Name the cluster with --bootstrap, or once for all commands: export
    KOHORT_BOOTSTRAP=localhost:9092
    """,
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def main() -> None:
    """Without a callback, Typer does not create a group."""
