"""A client that pipelines group requests behind a long-poll fetch of `__consumer_offsets`.

The fetch waits for the records of the same groups that the requests are about. It is completed in
the middle of a rebalance or a commit, and the node then goes on with the pipelined requests.
"""

from collections.abc import Sequence

from kohort.events.internal_topics import CONSUMER_OFFSETS
from kohort.sim.client_connection import FETCH_BY_NAME
from kohort.sim.context import SimContext
from kohort.sim.plan import SimulationPlan
from kohort.sim.process import ClientProcess
from kohort.types import BrokerId, Millis, Offset, Partition
from kohort.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.api.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

_TIMEOUT_MS = 3_000
_WAIT_MS = Millis(2_000)
_LATEST = Millis(-1)


class Pipeliner:
    def __init__(self, context: SimContext, plan: SimulationPlan) -> None:
        self._connection = context.connection(ClientProcess(context.scheduler), "pipeliner")
        self._partitions = tuple(map(Partition, range(plan.offsets_partitions)))

    def send(self, bodies: Sequence[object]) -> None:
        """Find the end of the topic, then fetch from there with the requests behind the fetch."""
        body = ListOffsetsRequest(
            replica_id=BrokerId(-1),
            topics=(
                ListOffsetsTopic(
                    name=CONSUMER_OFFSETS,
                    partitions=tuple(
                        ListOffsetsPartition(partition_index=each, timestamp=_LATEST)
                        for each in self._partitions
                    ),
                ),
            ),
        )

        def listed(response: ListOffsetsResponse) -> None:
            ends = {part.partition_index: part.offset for part in response.topics[0].partitions}
            self._send(_fetch(ends), version_max=FETCH_BY_NAME)
            for each in bodies:
                self._send(each)

        self._connection.send(body, _TIMEOUT_MS, listed, lambda _: None)

    def _send(self, body: object, version_max: int | None = None) -> None:
        """Ignore the response: the checkers see it."""
        self._connection.send(
            body, _TIMEOUT_MS, lambda _: None, lambda _: None, version_max=version_max
        )


def _fetch(ends: dict[Partition, Offset]) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=_WAIT_MS,
        min_bytes=1,
        topics=(
            FetchTopic(
                topic=CONSUMER_OFFSETS,
                partitions=tuple(
                    FetchPartition(
                        partition=partition, fetch_offset=max(end, Offset(0)), partition_max_bytes=1
                    )
                    for partition, end in ends.items()
                ),
            ),
        ),
    )
