"""kohort groups: lists, describes, watches and changes consumer groups."""

from typing import Final

import typer

from kohort.cli.lazy_group import lazy_group

COMMANDS: Final = {
    "list": ("list:run", "List groups with type and state."),
    "describe": (
        "describe:run",
        "Show state, coordinator, member count and lag; with --verbose members and offsets.",
    ),
    "members": ("members:run", "Show the members of groups; with --verbose their assignments."),
    "offsets": (
        "offsets:run",
        "Show committed offset, log end offset, lag and owner of each partition.",
    ),
    "lag": ("lag:run", "Show each group's total lag and its worst partition, worst group first."),
    "rebalances": (
        "rebalances:run",
        "Show the last rebalances: when, why, started by whom, and the duration of each phase.",
    ),
    "watch": ("watch:run", "Watch state, members, assignment, lag and rebalances of a group live."),
    "reset": (
        "reset:run",
        "Move the offsets of groups without members. Without --execute, print the plan only.",
    ),
    "delete": (
        "delete:run",
        "Delete groups and their committed offsets. Groups with members are not deleted.",
    ),
    "delete-offsets": (
        "delete_offsets:run",
        "Delete a group's committed offsets of topics that no member is subscribed to.",
    ),
    "remove-member": (
        "remove_member:run",
        "Remove members from a group, which then rebalances without them.",
    ),
}

app = typer.Typer(
    name="groups",
    cls=lazy_group("kohort.cli.groups", COMMANDS),
    help="""Inspect and change consumer groups of Kohort or Apache Kafka.

    Name the cluster with --bootstrap, or once for all commands: export
    KOHORT_BOOTSTRAP=localhost:9092
    """,
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def main() -> None:
    """Without a callback, Typer does not create a group."""
