"""What tests of Kafka programs use: `kohort.Node`, its helpers, and a pytest plugin."""

from typing import TYPE_CHECKING, Any

from kohort.lazy_names import import_name

if TYPE_CHECKING:
    from kohort.conditions.group_snapshot import GroupSnapshot
    from kohort.node.control.errors import ControlError
    from kohort.testing.cluster_handle import ClusterHandle
    from kohort.testing.faults import Fault
    from kohort.testing.namespace import Namespace
    from kohort.testing.node import Node
    from kohort.testing.process_node import ProcessNode
    from kohort.testing.real_cluster import NotOnRealKafka, RealCluster
    from kohort.testing.values import ProducerRecord
    from kohort.testing.waits import WaitTimeout

__all__ = [
    "ClusterHandle",
    "ControlError",
    "Fault",
    "GroupSnapshot",
    "Namespace",
    "Node",
    "NotOnRealKafka",
    "ProcessNode",
    "ProducerRecord",
    "RealCluster",
    "WaitTimeout",
]

_HOMES = {
    "ClusterHandle": "kohort.testing.cluster_handle",
    "ControlError": "kohort.node.control.errors",
    "Fault": "kohort.testing.faults",
    "GroupSnapshot": "kohort.conditions.group_snapshot",
    "Namespace": "kohort.testing.namespace",
    "Node": "kohort.testing.node",
    "NotOnRealKafka": "kohort.testing.real_cluster",
    "ProcessNode": "kohort.testing.process_node",
    "ProducerRecord": "kohort.testing.values",
    "RealCluster": "kohort.testing.real_cluster",
    "WaitTimeout": "kohort.testing.waits",
}


def __getattr__(name: str) -> Any:
    return import_name(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return __all__
