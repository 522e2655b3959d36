"""What the tests of nodes do as clients: produce, read and list."""

from typing import Any

from kohort.node.broker import Address
from kohort.types import GroupId, Topic
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k16_list_groups import ListGroupsRequest
from tests.node.broker_harness import fetch_request, new_batch, produce_request, values_in
from tests.node.raw_client import RawClient


def connect(bootstrap_servers: str) -> RawClient:
    host, _, port = bootstrap_servers.rpartition(":")
    return RawClient(Address(host=host, port=int(port)))


def produce(bootstrap_servers: str, topic: str, *values: str) -> None:
    """Create the topic, if it is missing, and append the values."""
    with connect(bootstrap_servers) as client:
        client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=Topic(topic)),)), 9)
        answer = client.ask(produce_request(new_batch(*values), topic, acks=-1), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


def read(bootstrap_servers: str, topic: str) -> list[str]:
    with connect(bootstrap_servers) as client:
        answer = client.ask(fetch_request(name=topic, max_wait_ms=0), 12)
    return values_in(answer.responses[0].partitions[0].records)


def list_topics(bootstrap_servers: str) -> list[str]:
    with connect(bootstrap_servers) as client:
        answer: Any = client.ask(MetadataRequest(topics=None), 9)
    return sorted(topic.name for topic in answer.topics)


def list_groups(bootstrap_servers: str) -> list[GroupId]:
    with connect(bootstrap_servers) as client:
        answer: Any = client.ask(ListGroupsRequest(), 4)
    return sorted(group.group_id for group in answer.groups)
