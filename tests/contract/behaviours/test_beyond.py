"""What Kohort leaves to Apache Kafka."""

from tests.contract.claims import differs, needs
from tests.contract.clients.library import Library, Place, Refused
from tests.contract.cluster import Cluster
from tests.contract.crowd import crowd_of


@needs("producing")
@differs("There are no transactions.", raises=Refused)
def test_what_a_transaction_has_committed_is_read_and_the_rest_is_not(
    cluster: Cluster, library: Library
) -> None:
    with crowd_of(cluster, library, 1) as crowd:
        library.produce_in_transactions(
            cluster.bootstrap_servers, crowd.topic, committed=b"yes", aborted=b"no"
        )

        crowd.join(is_reading_committed=True)
        crowd.read(1)

        assert [each.value for each in crowd.seen] == [b"yes"]


@needs("consumer-protocol")
@differs("There are no groups of the newer protocol (KIP-848).", api_key=68)
def test_a_group_forms_by_the_newer_protocol(cluster: Cluster, library: Library) -> None:
    with crowd_of(cluster, library, 2) as crowd:
        crowd.fill(1)

        crowd.join(protocol="consumer")

        crowd.read(2)
        assert crowd.members[0].assignment() == {Place(crowd.topic, 0), Place(crowd.topic, 1)}
