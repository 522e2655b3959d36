"""kohort groups offsets."""

from kohort.admin.group_offsets import describe_offsets
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
    offset_json,
    print_offsets,
    print_state_hints,
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
    """Show committed offset, log end offset, lag and owner of each partition.

    \b
      kohort groups offsets billing
      kohort groups offsets --all-groups --json
    """
    require_groups(groups, is_all=all_groups)
    with connect(bootstrap, command_config, timeout) as cluster:
        found = describe_selected(cluster, groups, is_all=all_groups)
        offsets = describe_offsets(cluster, found)
    if as_json:
        print_json(
            [
                {"group": group_id, "partitions": [offset_json(each) for each in partitions]}
                for group_id, partitions in offsets.items()
            ]
        )
        return
    print_offsets(offsets, is_verbose=verbose)
    print_state_hints(found.values())
