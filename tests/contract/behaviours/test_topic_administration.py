"""Topic administration: create, add partitions, delete, and configure."""

import pytest

from tests.contract.behaviours.test_group_administration import administering
from tests.contract.clients.client_library import ClientLibrary, RequestRejected
from tests.contract.cluster import Cluster
from tests.contract.expected_results import differs, needs


@needs("administration")
def test_a_topic_is_created(cluster: Cluster, library: ClientLibrary) -> None:
    topic = cluster.name_topic()

    with administering(cluster, library) as admin:
        admin.create_topic(topic, 3, {"retention.ms": "5000"})

        cluster.wait_for_topic(topic, 3)
        assert topic in admin.topics()
        assert admin.partitions(topic) == 3
        assert admin.setting(topic, "retention.ms") == "5000"


@needs("administration")
def test_a_topic_cannot_be_created_twice(cluster: Cluster, library: ClientLibrary) -> None:
    topic = cluster.create_topic()

    with administering(cluster, library) as admin, pytest.raises(RequestRejected) as refused:
        admin.create_topic(topic, 1, {})

    assert refused.value.name == "TOPIC_ALREADY_EXISTS"


@needs("administration")
def test_a_topic_with_an_unknown_setting_cannot_be_created(
    cluster: Cluster, library: ClientLibrary
) -> None:
    with administering(cluster, library) as admin, pytest.raises(RequestRejected) as refused:
        admin.create_topic(cluster.name_topic(), 1, {"retention.weeks": "2"})

    assert refused.value.name == "INVALID_CONFIG"


@needs("administration")
def test_partitions_can_be_added_and_not_removed(cluster: Cluster, library: ClientLibrary) -> None:
    topic = cluster.create_topic(2)

    with administering(cluster, library) as admin:
        admin.grow_topic(topic, 4)
        cluster.wait_for_topic(topic, 4)
        assert admin.partitions(topic) == 4

        with pytest.raises(RequestRejected) as refused:
            admin.grow_topic(topic, 1)
        assert refused.value.name == "INVALID_PARTITIONS"


@needs("administration")
def test_a_topic_is_deleted(cluster: Cluster, library: ClientLibrary) -> None:
    topic = cluster.create_topic()

    with administering(cluster, library) as admin:
        admin.delete_topic(topic)

    cluster.wait_until_gone(topic)


@needs("administration")
def test_a_setting_has_a_default(cluster: Cluster, library: ClientLibrary) -> None:
    topic = cluster.create_topic()

    with administering(cluster, library) as admin:
        assert admin.setting(topic, "cleanup.policy") == "delete"


@needs("administration")
@differs(
    "AlterConfigs, which replaces all settings at once, is not served: its successor is.",
    library="aiokafka",
    raises=RequestRejected,
)
def test_a_setting_is_changed(cluster: Cluster, library: ClientLibrary) -> None:
    topic = cluster.create_topic()

    with administering(cluster, library) as admin:
        admin.set(topic, "retention.ms", "5000")

        cluster.wait_for_setting(topic, "retention.ms", "5000")
        assert admin.setting(topic, "retention.ms") == "5000"


@needs("administration", "reset-settings")
def test_a_setting_is_reset_to_its_default(cluster: Cluster, library: ClientLibrary) -> None:
    topic = cluster.create_topic(settings={"retention.ms": 5000})

    with administering(cluster, library) as admin:
        admin.set(topic, "retention.ms", None)

        cluster.wait_for_setting(topic, "retention.ms", "604800000")
        assert admin.setting(topic, "retention.ms") == "604800000"


@needs("administration")
def test_the_cluster_is_described(cluster: Cluster, library: ClientLibrary) -> None:
    with administering(cluster, library) as admin:
        assert list(admin.brokers()) == [cluster.bootstrap_servers]
