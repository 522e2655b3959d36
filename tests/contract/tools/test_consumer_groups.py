"""kafka-consumer-groups: list, describe and delete groups."""

from tests.contract.tools.cluster import Cluster
from tests.contract.tools.cluster_setup import (
    commit,
    committed,
    describe,
    describe_all_groups,
    list_groups,
    member,
    write,
)
from tests.contract.tools.tool_output import read_tables
from tests.wait import wait_until


def states_of(cluster: Cluster, *what: str) -> dict[str, tuple[str, str]]:
    listed = cluster.run("kafka-consumer-groups", "--list", *what)
    return {row["GROUP"]: (row["TYPE"], row["STATE"]) for row in read_tables(listed.out)}


def test_groups_are_listed_by_state_and_type(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    busy, idle = cluster.unique_name("busy"), cluster.unique_name("idle")
    commit(cluster, idle, {(topic, 0): 0})

    with member(cluster, topic, busy):
        everything = states_of(cluster, "--state", "--type")
        stable = states_of(cluster, "--state", "Stable", "--type")
        empty = states_of(cluster, "--state", "empty", "--type", "classic")
        newer = states_of(cluster, "--state", "--type", "consumer")

    assert everything[busy] == ("Classic", "Stable")
    assert everything[idle] == ("Classic", "Empty")
    assert busy in stable
    assert idle not in stable
    assert idle in empty
    assert busy not in empty
    assert busy not in newer
    assert idle not in newer


def test_offsets_are_described_with_lag_and_owner(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(2), cluster.unique_name("group")
    write(cluster, topic, 5, partition=0)
    write(cluster, topic, 3, partition=1)

    with member(cluster, topic, group, client_id="reader", auto_commit_interval_ms="50") as reader:
        wait_until(lambda: len(reader.output_lines) == 8, 20, "all is read")
        wait_until(
            lambda: committed(cluster, group) == {(topic, 0): 5, (topic, 1): 3}, 20, "committed"
        )
        write(cluster, topic, 1, partition=1)
        rows = describe(cluster, group, "--verbose")

    assert [row["PARTITION"] for row in rows] == ["0", "1"]
    assert [row["LEADER-EPOCH"] for row in rows] == ["0", "0"]
    assert [row["LOG-END-OFFSET"] for row in rows] == ["5", "4"]
    assert {row["HOST"] for row in rows} == {"/127.0.0.1"}
    assert {row["CLIENT-ID"] for row in rows} == {"reader"}
    assert all(row["CONSUMER-ID"].startswith("reader-") for row in rows)
    for row in rows:
        lag = int(row["LOG-END-OFFSET"]) - int(row["CURRENT-OFFSET"])
        assert int(row["LAG"]) == lag


def test_offsets_without_a_member_have_no_owner(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.unique_name("group")
    write(cluster, topic, 4)
    commit(cluster, group, {(topic, 0): 1})

    (row,) = describe(cluster, group)

    assert (row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) == ("1", "4", "3")
    assert {row["CONSUMER-ID"], row["HOST"], row["CLIENT-ID"]} == {"-"}


def test_members_are_described_with_what_they_own(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(3), cluster.unique_name("group")

    with (
        member(cluster, topic, group, client_id="first"),
        member(cluster, topic, group, client_id="second", group_instance_id="second-1"),
    ):
        brief = describe(cluster, group, "--members")
        rows = describe(cluster, group, "--members", "--verbose")

    by_client = {row["CLIENT-ID"]: row for row in rows}
    assert {row["CLIENT-ID"]: row["#PARTITIONS"] for row in brief} == {
        client: row["#PARTITIONS"] for client, row in by_client.items()
    }
    assert by_client.keys() == {"first", "second"}
    assert by_client["first"]["GROUP-INSTANCE-ID"] == ""
    assert by_client["second"]["GROUP-INSTANCE-ID"] == "second-1"
    assert by_client["second"]["CONSUMER-ID"].startswith("second-1-")
    shares = sorted(row["CURRENT-ASSIGNMENT"] for row in rows)
    assert shares == [f"{topic}:0,1", f"{topic}:2"]
    assert sorted(row["#PARTITIONS"] for row in rows) == ["1", "2"]
    assert {row["TARGET-ASSIGNMENT"] for row in rows} == {"-"}


def test_the_state_shows_coordinator_and_assignor(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.unique_name("group")
    strategy = "org.apache.kafka.clients.consumer.RoundRobinAssignor"

    with member(cluster, topic, group, partition_assignment_strategy=strategy):
        (busy,) = describe(cluster, group, "--state", "--verbose")
    (idle,) = describe(cluster, group, "--state", "--verbose")

    coordinator = f"{cluster.bootstrap_servers}  (1)"
    assert busy["COORDINATOR (ID)"] == idle["COORDINATOR (ID)"] == coordinator
    assert (busy["STATE"], busy["#MEMBERS"]) == ("Stable", "1")
    assert busy["ASSIGNMENT-STRATEGY"] == "roundrobin"
    assert (idle["STATE"], idle["#MEMBERS"], idle["ASSIGNMENT-STRATEGY"]) == ("Empty", "0", "-")
    assert {busy["GROUP-EPOCH"], busy["TARGET-ASSIGNMENT-EPOCH"]} == {"-"}


def test_all_groups_are_described_at_once(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    groups = {cluster.unique_name("group") for _ in range(3)}
    for group in groups:
        commit(cluster, group, {(topic, 0): 0})

    rows = describe_all_groups(cluster, topic)

    assert {row["GROUP"] for row in rows} == groups


def test_an_unknown_group_is_reported(cluster: Cluster) -> None:
    ended = cluster.run("kafka-consumer-groups", "--describe", "--group", "unknown")

    assert "GroupIdNotFoundException" in ended.out
    assert "Group unknown not found" in ended.out


def test_a_group_with_members_cannot_be_deleted(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.unique_name("group")

    with member(cluster, topic, group):
        refused = cluster.run("kafka-consumer-groups", "--delete", "--group", group)
    deleted = cluster.run("kafka-consumer-groups", "--delete", "--group", group)

    assert "GroupNotEmptyException" in refused.out
    assert f"Deletion of requested consumer groups ('{group}') was successful" in deleted.out
    assert group not in list_groups(cluster)


def test_deleting_unknown_groups_reports_each(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.unique_name("group")
    commit(cluster, group, {(topic, 0): 0})

    arguments = ("--group", group, "--group", "unknown")
    ended = cluster.run("kafka-consumer-groups", "--delete", *arguments)

    assert "* Group 'unknown' could not be deleted" in ended.out
    assert "GroupIdNotFoundException" in ended.out
    assert f"These consumer groups were deleted successfully: '{group}'" in ended.out


def test_offsets_of_a_subscribed_topic_cannot_be_deleted(cluster: Cluster) -> None:
    read, left = cluster.create_topic(), cluster.create_topic(2)
    group = cluster.unique_name("group")
    commit(cluster, group, {(read, 0): 0, (left, 0): 0, (left, 1): 0})

    with member(cluster, read, group):
        refused = delete_offsets(cluster, group, read)
        deleted = delete_offsets(cluster, group, f"{left}:1")

    assert refused[read, "0"].startswith("Error: ")
    assert deleted == {(left, "1"): "Successful"}
    assert committed(cluster, group).keys() == {(read, 0), (left, 0)}


def test_offsets_of_an_unknown_group_cannot_be_deleted(cluster: Cluster) -> None:
    topic = cluster.create_topic()

    arguments = ("--delete-offsets", "--group", "unknown", "--topic", topic)
    ended = cluster.run("kafka-consumer-groups", *arguments)

    (row,) = read_tables(ended.out)
    assert "GroupIdNotFoundException" in row["STATUS"]


def delete_offsets(cluster: Cluster, group: str, topic: str) -> dict[tuple[str, str], str]:
    arguments = ("--delete-offsets", "--group", group, "--topic", topic)
    rows = read_tables(cluster.run("kafka-consumer-groups", *arguments).out)
    return {(row["TOPIC"], row["PARTITION"]): row["STATUS"] for row in rows}
