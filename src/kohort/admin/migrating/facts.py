"""What a migration must know of a cluster before it begins."""

from typing import Final

from kohort.admin import topics
from kohort.admin.cluster import Cluster
from kohort.admin.topics import Setting
from kohort.types import ErrorCode, Topic, Uuid, value
from kohort.wire.api.k03_metadata import MetadataRequest

_INTERNAL_PREFIX: Final = "__"


@value
class TopicFacts:
    topic: Topic
    topic_id: Uuid
    partitions: int
    is_internal: bool


@value
class ClusterFacts:
    where: str
    cluster_id: str
    topics: dict[Topic, TopicFacts]


def ask_cluster(cluster: Cluster) -> ClusterFacts:
    answer = cluster.caller.ask_any(MetadataRequest(topics=None, allow_auto_topic_creation=False))
    found = {
        each.name: TopicFacts(
            topic=each.name,
            topic_id=each.topic_id,
            partitions=len(each.partitions),
            is_internal=each.is_internal or each.name.startswith(_INTERNAL_PREFIX),
        )
        for each in answer.topics
        if each.error_code == ErrorCode.NONE
    }
    where = cluster.bootstrap_servers
    return ClusterFacts(where=where, cluster_id=answer.cluster_id or where, topics=found)


def ask_settings(cluster: Cluster, topic: Topic) -> dict[str, Setting]:
    return {each.name: each for each in topics.settings(cluster, topic)}
