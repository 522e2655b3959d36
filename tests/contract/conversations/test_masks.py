"""Masks replace ids and timestamps, and nothing else; equal ids have equal masks."""

from kohort.types import BrokerId, GroupId, MemberId, Offset, ProducerId, Topic, Uuid
from kohort.wire.api.k01_fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kohort.wire.api.k03_metadata import MetadataResponse, MetadataResponseBroker
from kohort.wire.api.k11_join_group import JoinGroupResponse, JoinGroupResponseMember
from kohort.wire.api.k14_sync_group import SyncGroupRequest
from kohort.wire.api.k22_init_producer_id import InitProducerIdResponse
from kohort.wire.api.k37_create_partitions import CreatePartitionsTopicResult
from kohort.wire.api.k42_delete_groups import DeletableGroupResult, DeleteGroupsResponse
from tests.contract.conversations.masks import NOW, Json, Masks
from tests.contract.conversations.message_tree import MESSAGE, show
from tests.contract.conversations.records import AT, batch

FIRST = "0b3ac7e9-5d6f-4f9e-9a53-0f2f1c9b7d11"
SECOND = "f2c1d0b5-17a4-4b8c-8a0e-6f0d2e1c3b4a"
NOW_MS = 1_800_000_000_000


def masked(*messages: object) -> list[Json]:
    """Mask trees one after the other, as in one conversation."""
    masks = Masks("-token", lambda: NOW_MS)
    return [masks.mask(show(message)) for message in messages]


def member(*ids: str, leader: str = "") -> JoinGroupResponse:
    members = tuple(JoinGroupResponseMember(member_id=MemberId(each)) for each in ids)
    return JoinGroupResponse(leader=MemberId(leader), members=members)


def test_the_same_id_has_the_same_mask_everywhere() -> None:
    result = masked(
        JoinGroupResponse(member_id=MemberId(f"a-{FIRST}")),
        SyncGroupRequest(member_id=MemberId(f"a-{FIRST}")),
        SyncGroupRequest(member_id=MemberId(f"a-{SECOND}")),
    )

    assert [each["member_id"] for each in result if isinstance(each, dict)] == [
        "a-<1>",
        "a-<1>",
        "a-<2>",
    ]


def test_ids_of_each_kind_are_numbered_separately() -> None:
    result = masked(
        SyncGroupRequest(member_id=MemberId(f"a-{FIRST}")),
        SyncGroupRequest(member_id=MemberId(f"b-{SECOND}")),
    )

    assert [each["member_id"] for each in result if isinstance(each, dict)] == ["a-<1>", "b-<1>"]


def test_conversations_that_differ_only_in_ids_are_equal() -> None:
    one = masked(member(f"a-{FIRST}", f"b-{SECOND}", leader=f"a-{FIRST}"))
    other = masked(member(f"a-{SECOND}", f"b-{FIRST}", leader=f"a-{SECOND}"))

    assert one == other


def test_another_leader_is_a_difference() -> None:
    one = masked(member(f"a-{FIRST}", f"b-{SECOND}", leader=f"a-{FIRST}"))
    other = masked(member(f"a-{FIRST}", f"b-{SECOND}", leader=f"b-{SECOND}"))

    assert one != other


def test_members_can_have_any_order() -> None:
    one = masked(member(f"b-{SECOND}", f"a-{FIRST}"))
    other = masked(member(f"a-{FIRST}", f"b-{SECOND}"))

    assert one == other


def test_members_with_numbers_are_ordered_by_them() -> None:
    known = [SyncGroupRequest(member_id=MemberId(f"a-{each}")) for each in (SECOND, FIRST)]

    (*_, result) = masked(*known, member(f"a-{FIRST}", f"a-{SECOND}"))

    assert result == {
        "error_code": "NONE",
        "members": [{"member_id": "a-<1>"}, {"member_id": "a-<2>"}],
    }


def test_a_meaningful_order_is_kept() -> None:
    brokers = [MetadataResponseBroker(node_id=BrokerId(each)) for each in (2, 1)]

    (result,) = masked(MetadataResponse(brokers=tuple(brokers)))

    assert result == {"error_code": "NONE", "brokers": [{"node_id": 2}, {"node_id": 1}]}


def test_the_token_of_a_conversation_is_removed() -> None:
    results = (DeletableGroupResult(group_id=GroupId("g-token")),)

    (result,) = masked(DeleteGroupsResponse(results=results))

    assert result == {"results": [{"group_id": "g", "error_code": "NONE"}]}


def test_only_current_timestamps_are_masked() -> None:
    records = batch("x", at=AT) + batch("y", at=NOW_MS - 5)
    data = PartitionData(high_watermark=Offset(NOW_MS + 3_600_000), records=records)
    topic = FetchableTopicResponse(
        topic=Topic("t"), topic_id=Uuid(b"0123456789abcdef"), partitions=(data,)
    )

    (result,) = masked(FetchResponse(responses=(topic,)))

    text = str(result)
    assert f"'max_timestamp': {AT}" in text
    assert f"'max_timestamp': '{NOW}'" in text
    assert str(NOW_MS + 3_600_000) in text
    assert "'topic_id': '<id 1>'" in text


def test_producer_ids_are_masked_except_minus_1() -> None:
    result = masked(
        InitProducerIdResponse(producer_id=ProducerId(4000)),
        InitProducerIdResponse(error_code=42),
    )

    assert result[0] == {"error_code": "NONE", "producer_id": "<producer 1>"}
    assert result[1] == {"error_code": "INVALID_REQUEST"}


def test_error_messages_are_masked() -> None:
    result = masked(
        CreatePartitionsTopicResult(error_code=42, error_message="no"),
        CreatePartitionsTopicResult(error_code=42, error_message="never"),
        CreatePartitionsTopicResult(error_code=42),
    )

    assert result[0] == result[1] == {"error_code": "INVALID_REQUEST", "error_message": MESSAGE}
    assert result[2] == {"error_code": "INVALID_REQUEST"}
