"""The settings of a node for tests. Explicit settings have precedence over them."""

from collections.abc import Mapping
from typing import Final

from kohort.node.config import format_value

TEST_DEFAULTS: Final[Mapping[str, str]] = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "10",
    "kohort.durability": "os",
}
"""Where they differ from Kafka's. With durability `os` nothing waits for the disk. What is
acknowledged survives a killed node, because the operating system has it."""


def node_settings(given: Mapping[str, object], *, like_kafka: bool, clock: str) -> dict[str, str]:
    texts = {} if like_kafka else dict(TEST_DEFAULTS)
    if clock != "real":
        texts["kohort.clock"] = clock
    return texts | {name: format_value(value) for name, value in given.items()}
