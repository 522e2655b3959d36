"""kohort groups delete."""

import typer

from kohort.admin.groups import delete_groups
from kohort.cli.cluster_options import (
    TIMEOUT_MS,
    AsJson,
    Bootstrap,
    Config,
    Timeout,
    connect,
    require_groups,
    select_groups,
)
from kohort.cli.groups.options import AllGroups, Groups
from kohort.cli.messages import fail_if_any, print_stderr
from kohort.cli.tables import print_json


def run(
    groups: Groups = None,
    *,
    bootstrap: Bootstrap,
    all_groups: AllGroups = False,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Delete groups and their committed offsets. Groups with members are not deleted.

    \b
      kohort groups delete billing shipping
    """
    require_groups(groups, is_all=all_groups)
    with connect(bootstrap, command_config, timeout) as cluster:
        results = delete_groups(cluster, select_groups(cluster, groups, is_all=all_groups))
    if as_json:
        print_json(
            [
                {
                    "group": group_id,
                    "deleted": error is None,
                    "error": None if error is None else str(error),
                }
                for group_id, error in results.items()
            ]
        )
    for group_id, error in results.items():
        if error is not None:
            print_stderr(error)
        elif not as_json:
            typer.echo(f"group {group_id!r} deleted")
    fail_if_any(results.values())
