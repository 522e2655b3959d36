"""kohort groups list."""

from typing import Annotated

import typer

from kohort.admin.groups import list_groups
from kohort.cli.cluster_options import (
    TIMEOUT_MS,
    AsJson,
    Bootstrap,
    Config,
    Timeout,
    connect,
)
from kohort.cli.messages import print_stderr
from kohort.cli.tables import print_json, print_table

_States = Annotated[
    str, typer.Option("--state", metavar="STATE,...", help="List only groups in these states.")
]
_Types = Annotated[
    str, typer.Option("--type", metavar="TYPE,...", help="List only groups of these types.")
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
    """List groups with type and state.

    States: Stable, PreparingRebalance, CompletingRebalance, Empty, Dead, Assigning, Reconciling.
    Types: Classic, Consumer.

    \b
      kohort groups list
      kohort groups list --state empty,stable --json
    """
    with connect(bootstrap, command_config, timeout) as cluster:
        found = list_groups(cluster, states=_split(state), types=_split(type_))
    if as_json:
        print_json(
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
    print_table(("GROUP", "TYPE", "STATE"), rows)
    if not rows:
        print_stderr("no groups match" if state or type_ else "there are no groups")


def _split(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]
