"""A partition read from its end backwards, as far as somebody needs it and no further."""

import time
from collections.abc import Iterator
from typing import Final

from kohort.admin.cluster import Cluster
from kohort.admin.errors import AdminError, ClusterUnreachable
from kohort.client.consumer import Consumer
from kohort.client.errors import ConsumerError
from kohort.client.fetching.records import ConsumerRecord
from kohort.client.topic_partition import TopicPartition
from kohort.types import Offset

_FIRST_WINDOW: Final = 1_000
"""Records. Each window is larger than the one before, so that a long way takes few steps."""

_GROWTH: Final = 4


def read_backwards(
    cluster: Cluster, partition: TopicPartition, first: Offset, end: Offset
) -> Iterator[list[ConsumerRecord]]:
    """Windows of records from `first` up to `end`: the newest window first, each in its order."""
    if first >= end:
        return
    with Consumer(
        bootstrap_servers=cluster.bootstrap_servers,
        client_id=cluster.settings.client_id,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
        exclude_internal_topics=False,
        default_api_timeout_ms=cluster.timeout_ms,
    ) as consumer:
        consumer.assign([partition])
        size = _FIRST_WINDOW
        while end > first:
            start = Offset(max(first, end - size))
            yield _read(cluster, consumer, partition, start, end)
            end = start
            size *= _GROWTH


def _read(
    cluster: Cluster, consumer: Consumer, partition: TopicPartition, start: Offset, end: Offset
) -> list[ConsumerRecord]:
    records: list[ConsumerRecord] = []
    shown = f"{partition.topic}:{partition.partition}"
    try:
        consumer.seek(partition, start)
        heard_at = time.monotonic()
        while consumer.position(partition) < end:
            polled = consumer.poll(timeout_ms=200).get(partition, [])
            records += (record for record in polled if record.offset < end)
            if polled:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > cluster.timeout_s:
                late = f"no records within {cluster.timeout_ms} ms"
                raise ClusterUnreachable(f"{shown} cannot be read: {late}")
    except ConsumerError as error:
        raise AdminError(f"{shown} cannot be read: {error}") from None
    return records
