"""kohort groups lag."""

from typing import Any

from kohort.admin.groups import get_groups
from kohort.admin.lag import GroupLag, PartitionLag
from kohort.admin.offsets import group_lags
from kohort.cli.cluster_options import (
    TIMEOUT_MS,
    AsJson,
    Bootstrap,
    Config,
    Timeout,
    connect,
    select_groups,
    usage_error,
)
from kohort.cli.groups.options import AllGroups, Groups
from kohort.cli.messages import print_stderr
from kohort.cli.tables import print_json, print_table


def run(
    groups: Groups = None,
    *,
    bootstrap: Bootstrap,
    all_groups: AllGroups = False,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Show each group's total lag and its worst partition, worst group first.

    Without GROUP, shows all groups.

    \b
      kohort groups lag
      kohort groups lag billing shipping --json
    """
    if all_groups and groups:
        usage_error("use either GROUP or --all-groups, not both")
    with connect(bootstrap, command_config, timeout) as cluster:
        selected = select_groups(cluster, groups, is_all=not groups)
        if groups:
            get_groups(cluster, selected)
        found = sorted(group_lags(cluster, selected).values(), key=lambda each: -each.total)
    if as_json:
        print_json([_lag_json(each) for each in found])
        return
    print_table(
        ("GROUP", "LAG", "WORST-PARTITION", "WORST-LAG", "#PARTITIONS", "#UNKNOWN"),
        [
            (
                each.group_id,
                each.total,
                _format_partition(each.worst),
                None if each.worst is None else each.worst.lag,
                len(each.partitions),
                each.unknown,
            )
            for each in found
        ],
    )
    if not found:
        print_stderr("there are no groups")


def _format_partition(worst: PartitionLag | None) -> str | None:
    if worst is None:
        return None
    return f"{worst.partition.topic}:{worst.partition.partition}"


def _lag_json(each: GroupLag) -> dict[str, Any]:
    worst = each.worst
    return {
        "group": each.group_id,
        "lag": each.total,
        "worst": None
        if worst is None
        else {
            "topic": worst.partition.topic,
            "partition": worst.partition.partition,
            "lag": worst.lag,
        },
        "partitions": len(each.partitions),
        "unknown": each.unknown,
    }
