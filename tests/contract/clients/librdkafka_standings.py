"""Committed offsets as librdkafka's binding has them."""

from collections.abc import Mapping

from confluent_kafka import TopicPartition

from tests.contract.clients.library import Place, Standing


def to_partitions(standings: Mapping[Place, Standing]) -> list[TopicPartition]:
    return [_to_partition(place, standing) for place, standing in standings.items()]


def _to_partition(place: Place, standing: Standing) -> TopicPartition:
    if standing.leader_epoch is None:
        return TopicPartition(*place, standing.offset, standing.metadata)
    return TopicPartition(*place, standing.offset, standing.metadata, standing.leader_epoch)


def to_standing(found: TopicPartition) -> Standing | None:
    if found.offset < 0:
        return None
    return Standing(
        offset=found.offset, metadata=found.metadata or "", leader_epoch=found.leader_epoch
    )
