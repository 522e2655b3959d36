"""Options that several group commands share."""

from typing import Annotated

import typer

from kohort.cli.cluster_options import complete_groups

Groups = Annotated[
    list[str] | None,
    typer.Argument(metavar="GROUP", help="Group ids.", autocompletion=complete_groups),
]
Group = Annotated[
    str, typer.Argument(metavar="GROUP", help="Group id.", autocompletion=complete_groups)
]
AllGroups = Annotated[bool, typer.Option("--all-groups", help="Select all groups.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show more columns.")]
Scope = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC[:P,P]",
        help="Select this topic, or some of its partitions. May be repeated.",
    ),
]
