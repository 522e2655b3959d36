"""Authorized operations in responses (KIP-430). There is no authorizer, so all are allowed.

Each constant is a bit set of Kafka's operation numbers: read 3, write 4, create 5, delete 6,
alter 7, describe 8, cluster action 9, describe configs 10, alter configs 11, idempotent write 12.
"""

from typing import Final


def _bits(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS: Final = _bits(3, 4, 5, 6, 7, 8, 10, 11)
GROUP_OPERATIONS: Final = _bits(3, 6, 8, 10, 11)
CLUSTER_OPERATIONS: Final = _bits(5, 7, 8, 9, 10, 11, 12)

NOT_REQUESTED: Final = -(2**31)
"""The value if the client did not request the operations."""
