"""Kafka's consumer-group system in Python: coordinator, node, consumer and data pipeline."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kohort.client import errors
    from kohort.client.consumer import Consumer
    from kohort.client.fetching.records import ConsumerRecord
    from kohort.client.listener import ConsumerRebalanceListener
    from kohort.client.member.events import Position
    from kohort.client.topic_partition import TopicPartition
    from kohort.node.embedded import Node

__all__ = [
    "Consumer",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "Node",
    "Position",
    "TopicPartition",
    "errors",
]

_HOMES = {
    "Consumer": "kohort.client.consumer",
    "ConsumerRebalanceListener": "kohort.client.listener",
    "ConsumerRecord": "kohort.client.fetching.records",
    "Node": "kohort.node.embedded",
    "Position": "kohort.client.member.events",
    "TopicPartition": "kohort.client.topic_partition",
    "errors": "kohort.client.errors",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: who needs one room does not load them all."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  # for the same reason

    home = import_module(_HOMES[name])
    return home if _HOMES[name].endswith(f".{name}") else getattr(home, name)
