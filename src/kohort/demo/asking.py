"""How far behind the services are, asked from outside."""

import time
from collections.abc import Iterable
from typing import Final

from kohort.client.consumer import Consumer
from kohort.client.topic_partition import TopicPartition
from kohort.demo.cast import ORDERS, PARTITIONS
from kohort.types import GroupId, Partition

_ANSWER_MS: Final = 5_000
_LOOK_S: Final = 0.2


def await_commits(
    bootstrap_servers: str, group_ids: Iterable[GroupId], patience_s: float
) -> dict[GroupId, int]:
    """The lag of each group, as soon as there is none, or when patience is over."""
    give_up_at = time.monotonic() + patience_s
    lags = {}
    for group_id in group_ids:
        with Consumer(
            bootstrap_servers=bootstrap_servers,
            group_id=group_id,
            client_id="asker",
            default_api_timeout_ms=_ANSWER_MS,
        ) as consumer:
            lags[group_id] = _ask_lag(consumer)
            while lags[group_id] and time.monotonic() < give_up_at:
                time.sleep(_LOOK_S)
                lags[group_id] = _ask_lag(consumer)
    return lags


def _ask_lag(consumer: Consumer) -> int:
    partitions = [TopicPartition(ORDERS, Partition(number)) for number in range(PARTITIONS)]
    ends, committed = consumer.end_offsets(partitions), consumer.committed(partitions)
    return sum(
        end - (position.offset if (position := committed[each]) is not None else 0)
        for each, end in ends.items()
    )
