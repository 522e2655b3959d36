"""Faults of requests and responses, over real sockets."""

import select

import confluent_kafka
import pytest

from kohort.node.control.errors import ControlError
from kohort.types import ErrorCode, GroupId, Topic
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k18_api_versions import ApiVersionsRequest
from kohort.wire.api.k42_delete_groups import DeleteGroupsRequest
from tests.node.broker_harness import fetch_request, new_batch, produce_request
from tests.node.raw_client import Disconnected, RawClient, errors_in, join_alone, join_request
from tests.testing.faulty_node import FaultyNode, commit_request, heartbeat_of
from tests.wait import wait_until

VERSIONS = ApiVersionsRequest(client_software_name="test", client_software_version="1")


def is_silent(client: RawClient, seconds: float = 0.1) -> bool:
    """Whether nothing was received, not even the end of the connection."""
    return not select.select([client.socket], [], [], seconds)[0]


def received_bytes(client: RawClient) -> bytes:
    """Everything until the end of the connection."""
    data = b""
    while piece := client.socket.recv(1 << 16):
        data += piece
    return data


# Errors


def test_error_is_answered_instead_of_handling_the_request(faulty_node: FaultyNode) -> None:
    faulty_node.create_topic("t")

    with (
        faulty_node.connect() as client,
        faulty_node.faults.error("OffsetCommit", "NOT_COORDINATOR") as fault,
    ):
        refused = client.ask(commit_request("g", 5), 9)

    assert errors_in(refused, ["topics", "partitions"]) == ["NOT_COORDINATOR"]
    assert fault.count == 1
    assert faulty_node.committed("g") == -1


def test_rule_is_gone_after_the_block(faulty_node: FaultyNode) -> None:
    with faulty_node.connect() as client:
        member = join_alone(client, "g")
        with faulty_node.faults.error("Heartbeat", "UNKNOWN_MEMBER_ID") as fault:
            during = client.ask(heartbeat_of(member), 4)
        after = client.ask(heartbeat_of(member), 4)

    assert (during.error_code, after.error_code) == (ErrorCode.UNKNOWN_MEMBER_ID, 0)
    assert fault.count == 1
    assert faulty_node.faults.list() == []


def test_repeated_requests_that_take_the_fast_path_are_matched(faulty_node: FaultyNode) -> None:
    faulty_node.create_topic("t")
    with faulty_node.connect() as client:
        member = join_alone(client, "g")
        beats = [client.ask(heartbeat_of(member), 4) for _ in range(3)]
        commits = [client.ask(commit_request("simple", each), 9) for each in range(4)]
        with (
            faulty_node.faults.error("Heartbeat", 15, member=member.member_id, times=2) as beating,
            faulty_node.faults.error(8, "COORDINATOR_NOT_AVAILABLE", topic="t", nth=2) as second,
        ):
            beats += [client.ask(heartbeat_of(member), 4) for _ in range(4)]
            commits += [client.ask(commit_request("simple", each), 9) for each in range(4, 8)]

    codes = [each.error_code for each in beats]
    assert codes == [0, 0, 0, 15, 15, 0, 0]
    errors = [errors_in(each, ["topics", "partitions"])[0] for each in commits]
    assert errors == ["NONE"] * 5 + ["COORDINATOR_NOT_AVAILABLE"] + ["NONE"] * 2
    assert (beating.count, second.count) == (2, 1)
    assert faulty_node.committed("simple") == 7


def test_large_request_that_is_decoded_in_slices_is_matched(faulty_node: FaultyNode) -> None:
    faulty_node.create_topic("t")
    batch = new_batch("x" * 200_000)

    with (
        faulty_node.connect() as client,
        faulty_node.faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", topic="t") as fault,
    ):
        refused = client.ask(produce_request(batch), 12)

    assert errors_in(refused, ["responses", "partition_responses"]) == ["NOT_LEADER_OR_FOLLOWER"]
    assert fault.count == 1


def test_newest_rule_comes_first_and_only_one_acts(faulty_node: FaultyNode) -> None:
    faults = faulty_node.faults
    with (
        faulty_node.connect() as client,
        faults.error(["Heartbeat", "ApiVersions"], "UNKNOWN_SERVER_ERROR") as old,
        faults.error("ApiVersions", "CLUSTER_AUTHORIZATION_FAILED", times=1) as new,
    ):
        answers = [client.ask(VERSIONS, 3).error_code for _ in range(2)]

    names = [ErrorCode(each).name for each in answers]
    assert names == ["CLUSTER_AUTHORIZATION_FAILED", "UNKNOWN_SERVER_ERROR"]
    assert (old.count, new.count) == (1, 1)


def test_metadata_with_an_error_still_has_the_broker(faulty_node: FaultyNode) -> None:
    asked = MetadataRequest(topics=(MetadataRequestTopic(name=Topic("t")),))

    with (
        faulty_node.connect() as client,
        faulty_node.faults.error("Metadata", "TOPIC_AUTHORIZATION_FAILED", topic="t"),
    ):
        answer = client.ask(asked, 12)

    assert errors_in(answer, ["topics"]) == ["TOPIC_AUTHORIZATION_FAILED"]
    assert [each.port for each in answer.brokers] == [faulty_node.address.port]


def test_producer_without_acks_is_disconnected(faulty_node: FaultyNode) -> None:
    faulty_node.create_topic("t")

    with faulty_node.connect() as client, faulty_node.faults.error("Produce", 6) as fault:
        client.send(produce_request(new_batch("lost"), acks=0), 9)
        fault.wait()
        with pytest.raises(Disconnected):
            client.receive_frame()


def test_librdkafka_reports_the_injected_error(faulty_node: FaultyNode) -> None:
    faulty_node.create_topic("t")
    producer = confluent_kafka.Producer({"bootstrap.servers": faulty_node.bootstrap_servers})
    errors: list[object] = []

    with faulty_node.faults.error("Produce", "TOPIC_AUTHORIZATION_FAILED", topic="t") as fault:
        producer.produce(
            "t", b"x", on_delivery=lambda error, _: errors.append(error and error.name())
        )
        producer.flush(20)

    assert errors == ["TOPIC_AUTHORIZATION_FAILED"]
    assert fault.count == 1


# Delays


def test_delay_holds_up_its_connection_and_no_other(faulty_node: FaultyNode) -> None:
    with (
        faulty_node.connect() as late,
        faulty_node.connect() as other,
        faulty_node.faults.delay("ApiVersions", 2.0, nth=1) as fault,
    ):
        first = late.send(VERSIONS, 3)
        fault.wait()
        behind = late.send(DeleteGroupsRequest(groups_names=(GroupId("none"),)), 2)
        answer = other.ask(VERSIONS, 3)

        assert answer.error_code == 0
        assert is_silent(late, 0)
        assert late.receive(first).error_code == 0
        assert errors_in(late.receive(behind), ["results"]) == ["GROUP_ID_NOT_FOUND"]


def test_delayed_request_takes_effect_although_its_client_is_gone(faulty_node: FaultyNode) -> None:
    faulty_node.create_topic("t")

    with faulty_node.faults.delay("OffsetCommit", 0.2) as fault:
        with faulty_node.connect() as client:
            client.send(commit_request("g", 5), 9)
            fault.wait()
        assert faulty_node.committed("g") == -1

    wait_until(lambda: faulty_node.committed("g") == 5, what="the delayed commit")


@pytest.mark.parametrize("size", [10, 200_000])
def test_delayed_produce_is_answered(faulty_node: FaultyNode, size: int) -> None:
    faulty_node.create_topic("t")

    with faulty_node.connect() as client, faulty_node.faults.delay("Produce", 0.05) as fault:
        answer = client.ask(produce_request(new_batch("x" * size), acks=-1), 12)

    assert errors_in(answer, ["responses", "partition_responses"]) == ["NONE"]
    assert fault.count == 1


def test_delayed_repeated_heartbeat_has_its_own_correlation_id(faulty_node: FaultyNode) -> None:
    with faulty_node.connect() as client:
        member = join_alone(client, "g")
        for _ in range(3):
            client.ask(heartbeat_of(member), 4)
        with faulty_node.faults.delay("Heartbeat", 0.05) as fault:
            answers = [client.ask(heartbeat_of(member), 4) for _ in range(2)]

    assert [each.error_code for each in answers] == [0, 0]
    assert fault.count == 2


# Lost connections and lost responses


@pytest.mark.parametrize(("after", "committed"), [(False, -1), (True, 5)])
def test_drop_closes_the_connection(
    faulty_node: FaultyNode, *, after: bool, committed: int
) -> None:
    faulty_node.create_topic("t")

    with (
        faulty_node.connect() as client,
        faulty_node.faults.drop("OffsetCommit", after=after, group="g") as fault,
        pytest.raises(Disconnected),
    ):
        client.ask(commit_request("g", 5), 9)

    assert fault.count == 1
    assert faulty_node.committed("g") == committed


@pytest.mark.parametrize(("after", "committed"), [(False, -1), (True, 5)])
def test_silence_leaves_the_connection_open(
    faulty_node: FaultyNode, *, after: bool, committed: int
) -> None:
    faulty_node.create_topic("t")

    with (
        faulty_node.connect() as client,
        faulty_node.faults.silence("OffsetCommit", after=after, times=1) as fault,
    ):
        client.send(commit_request("g", 5), 9)
        fault.wait()
        client.send(commit_request("g", 6), 9)
        client.send(VERSIONS, 3)

        assert is_silent(client)
        assert faulty_node.committed("g") == committed
        with faulty_node.connect() as other:
            assert other.ask(VERSIONS, 3).error_code == 0


def test_truncated_response_ends_the_connection(faulty_node: FaultyNode) -> None:
    with faulty_node.connect() as client:
        whole = client.send(VERSIONS, 3)
        expected = len(client.receive_frame())
        with faulty_node.faults.truncate("ApiVersions", size=20) as fault:
            client.send(VERSIONS, 3)
            received = received_bytes(client)

    assert whole.correlation_id == 1
    assert len(received) == 20
    assert int.from_bytes(received[:4]) == expected
    assert fault.count == 1


def test_response_of_a_parked_fetch_is_lost_when_it_is_ready(faulty_node: FaultyNode) -> None:
    faulty_node.create_topic("t")
    fetch = fetch_request(max_wait_ms=60_000)

    with (
        faulty_node.connect() as reader,
        faulty_node.connect() as writer,
        faulty_node.faults.drop("Fetch", after=True, topic="t") as fault,
    ):
        reader.send(fetch, 12)
        wait_until(lambda: faulty_node.faults.list()[0]["matched"] == 1)
        assert fault.count == 0
        writer.ask(produce_request(new_batch("x")), 12)

        fault.wait()
        with pytest.raises(Disconnected):
            reader.receive_frame()


def test_response_of_a_parked_join_is_lost(faulty_node: FaultyNode) -> None:
    with faulty_node.connect() as client, faulty_node.connect() as joiner:
        join_alone(client, "g")
        fresh = joiner.ask(join_request("g"), 9).member_id
        with faulty_node.faults.drop("JoinGroup", after=True, member=fresh) as fault:
            joiner.send(join_request("g", fresh), 9)
            faulty_node.faults.remove_member("g", faulty_node.describe("g").members[0].member_id)
            fault.wait()
            with pytest.raises(Disconnected):
                joiner.receive_frame()


def test_parked_response_is_sent_if_the_rule_is_removed_before(faulty_node: FaultyNode) -> None:
    faulty_node.create_topic("t")
    with faulty_node.connect() as reader, faulty_node.connect() as writer:
        with faulty_node.faults.silence("Fetch", after=True) as fault:
            asked = reader.send(fetch_request(max_wait_ms=60_000), 12)
            wait_until(lambda: faulty_node.faults.list()[0]["matched"] == 1)
        writer.ask(produce_request(new_batch("x")), 12)

        assert reader.receive(asked).error_code == 0
        assert reader.ask(VERSIONS, 3).error_code == 0
    assert fault.count == 0


def test_lost_produce_response_is_a_duplicate_for_an_idempotent_producer(
    faulty_node: FaultyNode,
) -> None:
    faulty_node.create_topic("t")
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": faulty_node.bootstrap_servers, "enable.idempotence": True}
    )

    with faulty_node.faults.drop("Produce", after=True, times=1) as fault:
        producer.produce("t", b"once")
        assert producer.flush(20) == 0

    assert fault.count == 1
    with faulty_node.connect() as client:
        high_watermark = client.ask(fetch_request(), 12).responses[0].partitions[0].high_watermark
    assert high_watermark == 1


# Waiting, listing and removing


def test_wait_reports_the_count_that_was_reached(faulty_node: FaultyNode) -> None:
    fault = faulty_node.faults.error("Heartbeat", "NOT_COORDINATOR")

    with pytest.raises(ControlError, match=r"\(error\) acted 0 times within 0.01 s, but 2") as told:
        fault.wait(count=2, timeout=0.01)

    assert told.value.details["count"] == 0
    fault.remove()
    fault.remove()
    with pytest.raises(ControlError, match="acted 0 times before it was removed"):
        fault.wait(timeout=5)


def test_faults_are_listed_and_cleared(faulty_node: FaultyNode) -> None:
    faults = faulty_node.faults
    first = faults.drop(["Fetch", 0], client_id="app", times=3)
    faults.disk_full()

    listed = faults.list()
    faults.clear()

    assert [each["action"] for each in listed] == ["drop", "disk-full"]
    assert listed[0] == {
        "id": first.id,
        "action": "drop",
        "api": ["Fetch", "0"],
        "client_id": "app",
        "after": False,
        "times": 3,
        "matched": 0,
        "count": 0,
    }
    assert faults.list() == []
    assert first.count == 0
    faulty_node.create_topic("t")


def test_restart_of_the_node_removes_the_rules(faulty_node: FaultyNode) -> None:
    with faulty_node.faults.error("ApiVersions", "UNKNOWN_SERVER_ERROR") as fault:
        faulty_node.restart()
        with faulty_node.connect() as client:
            assert client.ask(VERSIONS, 3).error_code == 0
        assert faulty_node.faults.list() == []

    assert fault.count == 0
    with pytest.raises(ControlError, match="there is no fault"):
        faulty_node.request("fault", {"id": fault.id})
