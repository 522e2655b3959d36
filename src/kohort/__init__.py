"""Kafka's consumer-group system in Python: coordinator, node, consumer and data pipeline."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kohort.node.embedded import Node

__all__ = ["Node"]

_HOMES = {"Node": "kohort.node.embedded"}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: who needs one room does not load them all."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  # for the same reason

    return getattr(import_module(_HOMES[name]), name)
