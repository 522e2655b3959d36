"""Kafka's consumer-group system in Python: coordinator, node, consumer and data pipeline."""

from typing import TYPE_CHECKING, Any

from kohort.lazy_names import import_name

if TYPE_CHECKING:
    from kohort.client import errors
    from kohort.client.consumer import Consumer
    from kohort.client.fetch.consumer_records import ConsumerRecord
    from kohort.client.fetch.offset_fetcher import OffsetAndTimestamp
    from kohort.client.member.member_events import OffsetAndMetadata
    from kohort.client.rebalances import ConsumerRebalanceListener
    from kohort.testing.node import Node
    from kohort.types import TopicPartition

__version__ = "0.1.0"

__all__ = [
    "Consumer",
    "ConsumerRebalanceListener",
    "ConsumerRecord",
    "Node",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "TopicPartition",
    "errors",
]

_HOMES = {
    "Consumer": "kohort.client.consumer",
    "ConsumerRebalanceListener": "kohort.client.rebalances",
    "ConsumerRecord": "kohort.client.fetch.consumer_records",
    "Node": "kohort.testing.node",
    "OffsetAndMetadata": "kohort.client.member.member_events",
    "OffsetAndTimestamp": "kohort.client.fetch.offset_fetcher",
    "TopicPartition": "kohort.types",
    "errors": "kohort.client.errors",
}


def __getattr__(name: str) -> Any:
    return import_name(__name__, _HOMES, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
