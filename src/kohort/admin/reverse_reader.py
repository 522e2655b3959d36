"""Reads a partition backwards from its end, in windows."""

import time
from collections.abc import Iterator
from typing import Final

from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import AdminError, ClusterUnreachable
from kohort.client.consumer import Consumer
from kohort.client.errors import ConsumerError
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.types import Offset, TopicPartition

_FIRST_WINDOW: Final = 1_000
"""In records. Each window is larger than the last, so that a long way takes few steps."""

_GROWTH: Final = 4


def read_backwards(
    cluster: Cluster, partition: TopicPartition, first: Offset, end: Offset
) -> Iterator[list[ConsumerRecord]]:
    """Windows of the records in [first, end), the newest window first; sorted within each."""
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
        progress_at = time.monotonic()
        while consumer.position(partition) < end:
            polled = consumer.poll(timeout_ms=200).get(partition, [])
            records += (record for record in polled if record.offset < end)
            if polled:
                progress_at = time.monotonic()
            elif time.monotonic() - progress_at > cluster.timeout_s:
                late = f"no records received within {cluster.timeout_ms} ms"
                raise ClusterUnreachable(f"cannot read {shown}: {late}")
    except ConsumerError as error:
        raise AdminError(f"cannot read {shown}: {error}") from None
    return records
