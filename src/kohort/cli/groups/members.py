"""kohort groups members."""

from kohort.cli.cluster_options import (
    TIMEOUT_MS,
    AsJson,
    Bootstrap,
    Config,
    Timeout,
    connect,
    require_groups,
)
from kohort.cli.groups.group_tables import (
    describe_selected,
    member_json,
    print_members,
    print_state_hints,
    sorted_members,
)
from kohort.cli.groups.options import AllGroups, Groups, Verbose
from kohort.cli.tables import print_json


def run(
    groups: Groups = None,
    *,
    bootstrap: Bootstrap,
    all_groups: AllGroups = False,
    verbose: Verbose = False,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Show the members of groups; with --verbose their assignments.

    \b
      kohort groups members billing --verbose
    """
    require_groups(groups, is_all=all_groups)
    with connect(bootstrap, command_config, timeout) as cluster:
        found = describe_selected(cluster, groups, is_all=all_groups)
    if as_json:
        print_json(
            [
                {
                    "group": group.group_id,
                    "members": [member_json(each) for each in sorted_members(group)],
                }
                for group in found.values()
            ]
        )
        return
    print_members(found.values(), is_verbose=verbose)
    print_state_hints(found.values())
