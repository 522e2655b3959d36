"""kohort groups list: which groups there are, of which type and in which state."""

from typing import Annotated

import typer

from kohort.cli.clusters import (
    TIMEOUT_MS,
    AsJson,
    Bootstrap,
    Config,
    Timeout,
    say_error,
    talking_to,
)
from kohort.cli.tables import show_json, show_table

_States = Annotated[
    str, typer.Option("--state", metavar="STATE,...", help="Only groups in these states.")
]
_Types = Annotated[
    str, typer.Option("--type", metavar="TYPE,...", help="Only groups of these types.")
]


def run(
    *,
    bootstrap: Bootstrap,
    state: _States = "",
    type_: _Types = "",
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """List all groups, or some of them.

    States: Stable, PreparingRebalance, CompletingRebalance, Empty, Dead, Assigning, Reconciling.
    Types: Classic, Consumer.

    \b
      kohort groups list
      kohort groups list --state empty,stable --json
    """
    from kohort.admin.groups import list_groups  # noqa: PLC0415  # other verbs need none of it

    with talking_to(bootstrap, command_config, timeout) as cluster:
        found = list_groups(cluster, states=_words(state), types=_words(type_))
    if as_json:
        show_json(
            [
                {
                    "group": each.group_id,
                    "type": each.group_type,
                    "state": each.state,
                    "protocol_type": each.protocol_type,
                }
                for each in found
            ]
        )
        return
    rows = [(each.group_id, each.group_type, each.state) for each in found]
    show_table(("GROUP", "TYPE", "STATE"), rows)
    if not rows:
        say_error("there are no such groups" if state or type_ else "there are no groups")


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
