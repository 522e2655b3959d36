"""kohort groups lag: how far groups are behind, all of them in a few questions."""

from typing import TYPE_CHECKING, Any

from kohort.cli.clusters import (
    TIMEOUT_MS,
    AsJson,
    Bootstrap,
    Config,
    Timeout,
    choose_groups,
    refuse,
    say_error,
    talking_to,
)
from kohort.cli.groups.options import AllGroups, Groups
from kohort.cli.tables import show_json, show_table

if TYPE_CHECKING:
    from kohort.admin.lag import GroupLag, PartitionLag


def run(
    groups: Groups = None,
    *,
    bootstrap: Bootstrap,
    all_groups: AllGroups = False,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Show each group's total lag and its worst partition, the worst group first.

    Without a name, all groups.

    \b
      kohort groups lag
      kohort groups lag billing shipping --json
    """
    from kohort.admin.groups import get_groups  # noqa: PLC0415  # other verbs need none of it
    from kohort.admin.offsets import lags  # noqa: PLC0415

    if all_groups and groups:
        refuse("name groups, or say --all-groups, but not both")
    with talking_to(bootstrap, command_config, timeout) as cluster:
        chosen = choose_groups(cluster, groups, is_all=not groups)
        if groups:
            get_groups(cluster, chosen)
        found = sorted(lags(cluster, chosen).values(), key=lambda each: -each.total)
    if as_json:
        show_json([_lag_json(each) for each in found])
        return
    show_table(
        ("GROUP", "LAG", "WORST-PARTITION", "WORST-LAG", "#PARTITIONS", "#UNKNOWN"),
        [
            (
                each.group_id,
                each.total,
                _spell(each.worst),
                None if each.worst is None else each.worst.lag,
                len(each.partitions),
                each.unknown,
            )
            for each in found
        ],
    )
    if not found:
        say_error("there are no groups")


def _spell(worst: "PartitionLag | None") -> str | None:
    if worst is None:
        return None
    return f"{worst.partition.topic}:{worst.partition.partition}"


def _lag_json(each: "GroupLag") -> dict[str, Any]:
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
