"""Options that several commands about groups take."""

from typing import Annotated

import typer

from kohort.cli.clusters import complete_groups

Groups = Annotated[
    list[str] | None,
    typer.Argument(metavar="GROUP", help="Which ones.", autocompletion=complete_groups),
]
Group = Annotated[
    str, typer.Argument(metavar="GROUP", help="Which one.", autocompletion=complete_groups)
]
AllGroups = Annotated[bool, typer.Option("--all-groups", help="All there are.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show more of each.")]
Scope = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC[:P,P]",
        help="This topic, or some of its partitions; may be repeated.",
    ),
]
