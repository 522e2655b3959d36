"""What clients may do, where they ask: everything, since nobody is kept from anything here.

Each is a set of Kafka's operations, one bit for each by its number: read 3, write 4, create 5,
delete 6, alter 7, describe 8, cluster action 9, describe configs 10, alter configs 11,
idempotent write 12 (KIP-430).
"""

from typing import Final


def _set(*operations: int) -> int:
    return sum(1 << operation for operation in operations)


TOPIC_OPERATIONS: Final = _set(3, 4, 5, 6, 7, 8, 10, 11)
CLUSTER_OPERATIONS: Final = _set(5, 7, 8, 9, 10, 11, 12)

NOT_ASKED: Final = -(2**31)
"""What stands in an answer to a client that did not ask."""
