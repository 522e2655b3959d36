"""kohort groups delete-offsets."""

from kohort.admin.offset_reset import read_scope
from kohort.admin.offsets import delete_offsets
from kohort.admin.topics import partitions_of
from kohort.cli.cluster_options import (
    TIMEOUT_MS,
    AsJson,
    Bootstrap,
    Config,
    Timeout,
    connect,
    usage_error,
)
from kohort.cli.groups.options import Group, Scope
from kohort.cli.messages import fail_if_any, print_stderr
from kohort.cli.tables import print_json, print_table
from kohort.types import GroupId


def run(
    group: Group,
    *,
    bootstrap: Bootstrap,
    topic: Scope = None,
    command_config: Config = None,
    timeout: Timeout = TIMEOUT_MS,
    as_json: AsJson = False,
) -> None:
    """Delete a group's committed offsets of topics that no member is subscribed to.

    \b
      kohort groups delete-offsets billing --topic orders:0,1
    """
    if not topic:
        usage_error("name at least one --topic")
    with connect(bootstrap, command_config, timeout) as cluster:
        scope = read_scope(topic)
        partitions = (*partitions_of(cluster, scope.topics), *scope.partitions)
        results = delete_offsets(cluster, GroupId(group), partitions)
    if as_json:
        print_json(
            [
                {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "deleted": error is None,
                    "error": None if error is None else str(error),
                }
                for partition, error in results.items()
            ]
        )
    else:
        print_table(
            ("TOPIC", "PARTITION", "STATUS"),
            [
                (
                    partition.topic,
                    partition.partition,
                    "deleted" if error is None else "not deleted",
                )
                for partition, error in results.items()
            ],
        )
    for error in results.values():
        if error is not None:
            print_stderr(error)
    fail_if_any(results.values())
