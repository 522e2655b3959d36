"""Topics from outside: made, grown, deleted, and set."""

import pytest

from tests.contract.behaviours.test_group_administration import administering
from tests.contract.claims import differs, needs
from tests.contract.clients.library import Library, Refused
from tests.contract.cluster import Cluster


@needs("administration")
def test_a_topic_is_made(cluster: Cluster, library: Library) -> None:
    topic = cluster.name_topic()

    with administering(cluster, library) as admin:
        admin.create_topic(topic, 3, {"retention.ms": "5000"})

        cluster.wait_for_topic(topic, 3)
        assert topic in admin.topics()
        assert admin.partitions(topic) == 3
        assert admin.setting(topic, "retention.ms") == "5000"


@needs("administration")
def test_a_topic_is_not_made_twice(cluster: Cluster, library: Library) -> None:
    topic = cluster.create_topic()

    with administering(cluster, library) as admin, pytest.raises(Refused) as refused:
        admin.create_topic(topic, 1, {})

    assert refused.value.name == "TOPIC_ALREADY_EXISTS"


@needs("administration")
def test_a_topic_is_not_made_with_a_setting_that_does_not_exist(
    cluster: Cluster, library: Library
) -> None:
    with administering(cluster, library) as admin, pytest.raises(Refused) as refused:
        admin.create_topic(cluster.name_topic(), 1, {"retention.weeks": "2"})

    assert refused.value.name == "INVALID_CONFIG"


@needs("administration")
def test_a_topic_grows_and_does_not_shrink(cluster: Cluster, library: Library) -> None:
    topic = cluster.create_topic(2)

    with administering(cluster, library) as admin:
        admin.grow_topic(topic, 4)
        cluster.wait_for_topic(topic, 4)
        assert admin.partitions(topic) == 4

        with pytest.raises(Refused) as refused:
            admin.grow_topic(topic, 1)
        assert refused.value.name == "INVALID_PARTITIONS"


@needs("administration")
def test_a_topic_is_deleted(cluster: Cluster, library: Library) -> None:
    topic = cluster.create_topic()

    with administering(cluster, library) as admin:
        admin.delete_topic(topic)

    cluster.wait_until_gone(topic)


@needs("administration")
def test_a_setting_holds_by_default(cluster: Cluster, library: Library) -> None:
    topic = cluster.create_topic()

    with administering(cluster, library) as admin:
        assert admin.setting(topic, "cleanup.policy") == "delete"


@needs("administration")
@differs(
    "AlterConfigs, which replaces all settings at once, is not served: its successor is.",
    library="aiokafka",
    raises=Refused,
)
def test_a_setting_is_changed(cluster: Cluster, library: Library) -> None:
    topic = cluster.create_topic()

    with administering(cluster, library) as admin:
        admin.set(topic, "retention.ms", "5000")

        cluster.wait_for_setting(topic, "retention.ms", "5000")
        assert admin.setting(topic, "retention.ms") == "5000"


@needs("administration", "reset-settings")
def test_a_setting_is_taken_back(cluster: Cluster, library: Library) -> None:
    topic = cluster.create_topic(settings={"retention.ms": 5000})

    with administering(cluster, library) as admin:
        admin.set(topic, "retention.ms", None)

        cluster.wait_for_setting(topic, "retention.ms", "604800000")
        assert admin.setting(topic, "retention.ms") == "604800000"


@needs("administration")
def test_the_cluster_is_described(cluster: Cluster, library: Library) -> None:
    with administering(cluster, library) as admin:
        assert list(admin.brokers()) == [cluster.bootstrap_servers]
