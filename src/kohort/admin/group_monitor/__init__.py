"""Live state of a cluster's consumer groups: what they do now, and their recent rebalances.

    with open_cluster("localhost:9092") as cluster, start_monitor(cluster) as monitor:
        version = 0
        while True:
            version = monitor.wait_for_change(version, timeout_s=1.0)
            with monitor.locked_state() as state:
                view = state.find_group(GroupId("billing"), now_ms())

`ClusterState` is pure. It folds the records of `__consumer_offsets`, the events of
`__kohort_events` and polled responses, and returns immutable views (`views.py`). `GroupMonitor`
runs the threads that read both topics and poll groups and log ends every two seconds. It keeps
trying during outages.

On a cluster without `__kohort_events` a rebalance is the difference of two generations: its
`trigger`, `initiator` and phases are None, because no record contains them.
"""

from kohort.admin.group_monitor.cluster_state import ClusterState
from kohort.admin.group_monitor.monitor import GroupMonitor, MonitorHealth, now_ms, start_monitor
from kohort.admin.group_monitor.views import (
    ClusterOverview,
    GroupPage,
    GroupQuery,
    GroupView,
    MonitoredGroupRow,
    MonitoredMember,
    ObservedRebalance,
    OwnershipInterval,
    PartitionOffsets,
    PartitionStatus,
    Status,
)

__all__ = [
    "ClusterOverview",
    "ClusterState",
    "GroupMonitor",
    "GroupPage",
    "GroupQuery",
    "GroupView",
    "MonitorHealth",
    "MonitoredGroupRow",
    "MonitoredMember",
    "ObservedRebalance",
    "OwnershipInterval",
    "PartitionOffsets",
    "PartitionStatus",
    "Status",
    "now_ms",
    "start_monitor",
]
