"""Features that Kohort does not support."""

from tests.contract.clients.client_library import ClientLibrary, RequestRejected, TopicAndPartition
from tests.contract.cluster import Cluster
from tests.contract.expected_results import differs, needs
from tests.contract.member_crowd import crowd_of


@needs("producing")
@differs("Transactions are not supported.", raises=RequestRejected)
def test_only_committed_transactions_are_read_with_read_committed(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        library.produce_in_transactions(
            cluster.bootstrap_servers, crowd.topic, committed=b"yes", aborted=b"no"
        )

        crowd.join(read_committed=True)
        crowd.read(1)

        assert [each.value for each in crowd.consumed] == [b"yes"]


@needs("consumer-protocol")
@differs("The consumer group protocol of KIP-848 is not supported.", api_key=68)
def test_a_group_forms_with_the_consumer_protocol(cluster: Cluster, library: ClientLibrary) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        crowd.fill(1)

        crowd.join(protocol="consumer")

        crowd.read(2)
        assert crowd.members[0].assignment() == {
            TopicAndPartition(crowd.topic, 0),
            TopicAndPartition(crowd.topic, 1),
        }
