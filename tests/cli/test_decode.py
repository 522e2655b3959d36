"""kohort decode shows what a message holds, and says in one sentence why it cannot."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from kohort.cli.decode import app
from kohort.types import ErrorCode, GroupId, MemberId, Millis, Partition, Topic, Uuid
from kohort.wire import batch, consumer_offsets
from kohort.wire.api import all_apis, k11_join_group, k12_heartbeat, k18_api_versions
from kohort.wire.api.k68_consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kohort.wire.envelope import encode_request, encode_response
from kohort.wire.jsonable import jsonable

HEARTBEAT = "000c0004 00000007 0001 63 00 0267 00000003 026d 00 00"
"""Version 4 of client c: member m of group g in generation 3, correlation id 7."""

HEARTBEAT_SHOWN = {
    "api": "Heartbeat",
    "version": 4,
    "header": {
        "request_api_key": 12,
        "request_api_version": 4,
        "correlation_id": 7,
        "client_id": "c",
    },
    "body": {
        "group_id": "g",
        "generation_id": 3,
        "member_id": "m",
        "group_instance_id": None,
    },
}

KEY = "0001 0001 67 0001 74 00000001"
"""The key of a commit of group g for partition 1 of topic t."""


def decode(*arguments: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, arguments, input=stdin)


def shown(*arguments: str, stdin: str | None = None) -> Any:
    result = decode(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refusal(*arguments: str, stdin: bytes | None = None) -> str:
    """The sentence that bad input is met with."""
    result = decode(*arguments, stdin=stdin)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    return result.stderr.strip()


def misuse(*arguments: str) -> str:
    """What is said about a wrong command, on one line and without the frame around it."""
    result = decode(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    return " ".join(result.stderr.replace("│", " ").split())


# Requests and responses


def test_a_request_is_shown_with_its_header_and_body() -> None:
    assert shown("request", HEARTBEAT) == HEARTBEAT_SHOWN


def test_a_length_before_a_request_is_recognised() -> None:
    assert shown("request", "00000016" + HEARTBEAT) == HEARTBEAT_SHOWN


@pytest.mark.parametrize(
    "digits",
    [
        HEARTBEAT.replace(" ", "").upper(),
        "0x" + HEARTBEAT.replace(" ", ""),
        bytes.fromhex(HEARTBEAT).hex(":"),
        " ".join(f"0X{byte:02x}" for byte in bytes.fromhex(HEARTBEAT)),
        f"\n\t{HEARTBEAT}\r\n",
    ],
)
def test_digits_may_be_written_as_people_write_them(digits: str) -> None:
    assert shown("request", digits) == HEARTBEAT_SHOWN


def test_a_dash_reads_the_digits_from_stdin() -> None:
    assert shown("request", "-", stdin=HEARTBEAT + "\n") == HEARTBEAT_SHOWN


def test_fields_that_a_version_does_not_have_are_not_shown() -> None:
    frame = encode_request(k12_heartbeat.HeartbeatRequest(), 2, 1, None)

    body = shown("request", frame.hex())["body"]

    assert list(body) == ["group_id", "generation_id", "member_id"]


def test_bytes_are_hexadecimal_unless_text_is_asked_for() -> None:
    protocols = tuple(
        k11_join_group.JoinGroupRequestProtocol(name="p", metadata=metadata)
        for metadata in (b"Gr\xc3\xbc\xc3\x9fe", b"\xff", b"\x00a", b"")
    )
    frame = encode_request(k11_join_group.JoinGroupRequest(protocols=protocols), 9, 1, "c").hex()

    plain = [each["metadata"] for each in shown("request", frame)["body"]["protocols"]]
    text = [each["metadata"] for each in shown("request", frame, "--text")["body"]["protocols"]]

    assert plain == ["4772c3bcc39f65", "ff", "0061", ""]
    assert text == ["Grüße", "ff", "0061", ""]


@pytest.mark.parametrize("name", ["heartbeat", "Heartbeat", "12"])
def test_a_response_is_read_by_the_name_or_number_of_its_api(name: str) -> None:
    frame = "00000007 00 00000000 001b 00"

    assert shown("response", "--api", name, "--version", "4", frame) == {
        "api": "Heartbeat",
        "version": 4,
        "header": {"correlation_id": 7},
        "body": {"throttle_time_ms": 0, "error_code": 27},
    }


@pytest.mark.parametrize("name", ["join-group", "JoinGroup", "join_group", "JOINGROUP"])
def test_an_api_may_be_written_in_any_of_the_usual_ways(name: str) -> None:
    frame = encode_response(k11_join_group.JoinGroupResponse(protocol_name=""), 0, 1).hex()

    assert shown("response", "--api", name, "--version", "0", frame)["api"] == "JoinGroup"


def test_a_correlation_id_is_not_taken_for_a_length() -> None:
    frame = "00000002 001b"

    response = shown("response", "--api", "heartbeat", "--version", "0", frame)

    assert response["header"] == {"correlation_id": 2}


def test_a_uuid_is_shown_in_its_canonical_form() -> None:
    partitions = TopicPartitions(topic_id=Uuid(bytes(range(16))), partitions=(Partition(3),))
    body = ConsumerGroupHeartbeatResponse(assignment=Assignment(topic_partitions=(partitions,)))

    frame = encode_response(body, 1, 1).hex()

    response = shown("response", "--api", "68", "--version", "1", frame)
    assert response["body"]["assignment"] == {
        "topic_partitions": [
            {"topic_id": "00010203-0405-0607-0809-0a0b0c0d0e0f", "partitions": [3]}
        ]
    }


def test_a_broker_that_refuses_a_version_of_api_versions_is_understood() -> None:
    refused = k18_api_versions.ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)

    frame = encode_response(refused, 0, 1).hex()

    response = shown("response", "--api", "api-versions", "--version", "4", frame)
    assert response["version"] == 0
    assert response["body"] == {"error_code": 35, "api_keys": []}


@pytest.mark.parametrize("api", all_apis(), ids=lambda api: api.name)
def test_every_version_of_every_api_can_be_shown(api: Any) -> None:
    for version in api.versions:
        sent = shown("request", encode_request(api.request(), version, 1, "c").hex())
        frame = encode_response(api.response(), version, 1).hex()
        answered = shown("response", "--api", str(api.key), "--version", str(version), frame)

        assert sent["api"] == answered["api"] == api.name
        assert sent["version"] == answered["version"] == version


# Batches and records


def new_batch(value: bytes, codec: batch.Codec = batch.Codec.NONE) -> bytes:
    header = batch.Header(key="h", value=None)
    record = batch.NewRecord(key=b"k", value=value, timestamp=Millis(5), headers=(header,))
    return batch.encode(batch.NewBatch(records=(record,), codec=codec))


def test_a_batch_is_shown_with_its_records() -> None:
    (only,) = shown("batch", new_batch(b"v", batch.Codec.GZIP).hex(), "--text")

    assert only["header"]["record_count"] == 1
    assert only["codec"] == "gzip"
    assert only["timestamp_type"] == "create_time"
    assert only["records"] == [
        {
            "offset": 0,
            "timestamp": 5,
            "key": "k",
            "value": "v",
            "headers": [{"key": "h", "value": None}],
        }
    ]


def test_batches_in_a_row_are_all_shown() -> None:
    data = new_batch(b"one") + new_batch(b"two")

    both = shown("batch", data.hex(), "--text")
    framed = shown("batch", len(data).to_bytes(4).hex() + data.hex(), "--text")

    assert [each["records"][0]["value"] for each in both] == ["one", "two"]
    assert framed == both


def test_a_commit_is_shown_with_the_fields_of_its_version() -> None:
    value = "0003 000000000000002a ffffffff 0002 6869 0000000000000005"

    assert shown("offsets-record", "--key", KEY, "--value", value) == {
        "kind": "OffsetCommit",
        "key_version": 1,
        "key": {"group": "g", "topic": "t", "partition": 1},
        "value_version": 3,
        "value": {
            "offset": 42,
            "leader_epoch": -1,
            "metadata": "hi",
            "commit_timestamp": 5,
        },
    }


def test_a_record_without_a_value_is_a_tombstone() -> None:
    record = shown("offsets-record", "--key", "-", stdin=KEY)

    assert record["value_version"] is None
    assert record["value"] is None


def test_a_group_is_shown_with_its_members() -> None:
    key = consumer_offsets.GroupMetadataKey(group=GroupId("g"))
    member = consumer_offsets.MemberMetadata(member_id=MemberId("m"), subscription=b"\x00\x01")
    value = consumer_offsets.GroupMetadataValue(protocol_type="consumer", members=(member,))

    record = shown(
        "offsets-record",
        *("--key", consumer_offsets.encode_key(key).hex()),
        *("--value", consumer_offsets.encode_value(value, 3).hex()),
    )

    assert record["kind"] == "GroupMetadata"
    assert record["value"]["members"][0]["member_id"] == "m"
    assert record["value"]["members"][0]["subscription"] == "0001"


# What cannot be read


def test_a_cut_message_names_message_field_and_position() -> None:
    said = refusal("request", bytes.fromhex(HEARTBEAT)[:-3].hex())

    assert said.startswith("HeartbeatRequest v4 cannot be read: member_id at byte 19: ")


def test_positions_count_from_the_first_byte_that_was_given() -> None:
    cut = bytes.fromhex(HEARTBEAT)[:-3]

    said = refusal("request", (len(cut).to_bytes(4) + cut).hex())

    assert said.startswith("HeartbeatRequest v4 cannot be read: member_id at byte 23: ")


def test_bytes_behind_a_response_are_counted() -> None:
    answer = ("response", "--api", "heartbeat", "--version", "4")

    complaint = refusal(*answer, "00000007 00 00000000 0000 00 ffff")

    assert "end at byte 12: 2 bytes behind the message" in complaint


def test_bytes_behind_a_request_are_let_be_as_a_broker_does() -> None:
    assert shown("request", HEARTBEAT + "ffff") == shown("request", HEARTBEAT)


def test_a_version_that_is_not_spoken_is_told_with_those_that_are() -> None:
    assert refusal("request", "000c 0009") == "Heartbeat has no version 9 here, only 0 to 4."


def test_an_api_key_that_is_not_spoken_is_told() -> None:
    assert refusal("request", "0063 0000") == "No API here has the key 99."


def test_a_length_that_does_not_fit_is_suspected() -> None:
    said = refusal("request", "00000016" + HEARTBEAT[:-2])

    assert said.endswith("If it begins with a length, that is 22, but 21 bytes follow.")


def test_a_batch_whose_checksum_is_wrong_is_refused() -> None:
    damaged = bytearray(new_batch(b"v"))
    damaged[-1] ^= 1

    assert refusal("batch", damaged.hex()).startswith(
        "RecordBatch cannot be read: crc at byte 17: "
    )


def test_a_record_of_an_unknown_kind_is_refused() -> None:
    assert refusal("offsets-record", "--key", "0063") == "Record key has no version 99 here."


def test_a_value_of_an_unknown_version_is_refused() -> None:
    said = refusal("offsets-record", "--key", KEY, "--value", "0063")

    assert said == "OffsetCommitValue has no version 99 here."


@pytest.mark.parametrize(
    ("digits", "said"),
    [
        ("00 1g", "Character 5, 'g', is no hexadecimal digit."),
        ("0x00 0x1\x1b", "Character 9, '\\x1b', is no hexadecimal digit."),
        ("00 1 00", "From character 4 on the digits are odd in number: 1."),
        ("", "There are no bytes to read."),
        (" : ", "There are no bytes to read."),
    ],
)
def test_what_is_no_hexadecimal_is_told_with_its_place(digits: str, said: str) -> None:
    assert refusal("request", digits) == said


def test_bytes_on_stdin_that_are_no_text_are_refused() -> None:
    assert refusal("batch", "-", stdin=b"\xff\x00").startswith("Character 1, ")


# What is not understood


def test_a_misspelt_api_is_met_with_the_nearest_name() -> None:
    said = misuse("response", "--api", "hartbeat", "--version", "4", "00")

    assert "no API is called 'hartbeat'. Did you mean Heartbeat?" in said


def test_an_unknown_api_is_met_without_a_guess() -> None:
    said = misuse("response", "--api", "99", "--version", "4", "00")

    assert "no API is called '99'." in said
    assert "Did you mean" not in said


def test_an_unknown_version_is_met_with_the_known_ones() -> None:
    said = misuse("response", "--api", "heartbeat", "--version", "5", "00")

    assert "Heartbeat is spoken in versions 0 to 4." in said


def test_a_response_needs_to_be_told_what_it_answers() -> None:
    assert "--api" in misuse("response", "00")


def test_stdin_cannot_hold_both_key_and_value() -> None:
    said = misuse("offsets-record", "--key", "-", "--value", "-")

    assert "stdin can hold only one of key and value." in said


@given(data=st.binary(), command=st.sampled_from(["request", "response", "batch", "record"]))
def test_no_bytes_lead_to_a_traceback(data: bytes, command: str) -> None:
    arguments = {
        "request": ("request", "-"),
        "response": ("response", "--api", "metadata", "--version", "12", "-"),
        "batch": ("batch", "-"),
        "record": ("offsets-record", "--key", KEY, "--value", "-"),
    }

    result = decode(*arguments[command], stdin=data.hex())

    assert result.exit_code in (0, 1)
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_a_value_that_was_never_decoded_is_no_json() -> None:
    with pytest.raises(TypeError, match="is no decoded value"):
        jsonable(object())


def test_fields_keep_the_order_of_their_declaration() -> None:
    key = jsonable(consumer_offsets.OffsetCommitKey(topic=Topic("t"), partition=Partition(2)))

    assert isinstance(key, dict)
    assert list(key.items()) == [("group", ""), ("topic", "t"), ("partition", 2)]
