"""kohort decode prints messages as JSON, or one sentence about why it cannot."""

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

HEARTBEAT_JSON = {
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


def decoded(*arguments: str, stdin: str | None = None) -> Any:
    result = decode(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def input_error(*arguments: str, stdin: bytes | None = None) -> str:
    """Return the sentence about invalid input."""
    result = decode(*arguments, stdin=stdin)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    return result.stderr.strip()


def usage_error(*arguments: str) -> str:
    """Return Typer's message on one line, without its frame."""
    result = decode(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    return " ".join(result.stderr.replace("│", " ").split())


# Requests and responses


def test_request_has_header_and_body() -> None:
    assert decoded("request", HEARTBEAT) == HEARTBEAT_JSON


def test_length_prefix_of_a_request_is_recognized() -> None:
    assert decoded("request", "00000016" + HEARTBEAT) == HEARTBEAT_JSON


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
def test_common_notations_of_digits_are_accepted(digits: str) -> None:
    assert decoded("request", digits) == HEARTBEAT_JSON


def test_dash_reads_the_digits_from_stdin() -> None:
    assert decoded("request", "-", stdin=HEARTBEAT + "\n") == HEARTBEAT_JSON


def test_fields_of_other_versions_are_omitted() -> None:
    frame = encode_request(k12_heartbeat.HeartbeatRequest(), 2, 1, None)

    body = decoded("request", frame.hex())["body"]

    assert list(body) == ["group_id", "generation_id", "member_id"]


def test_bytes_are_hexadecimal_without_text_option() -> None:
    protocols = tuple(
        k11_join_group.JoinGroupRequestProtocol(name="p", metadata=metadata)
        for metadata in (b"Gr\xc3\xbc\xc3\x9fe", b"\xff", b"\x00a", b"")
    )
    frame = encode_request(k11_join_group.JoinGroupRequest(protocols=protocols), 9, 1, "c").hex()

    plain = [each["metadata"] for each in decoded("request", frame)["body"]["protocols"]]
    text = [each["metadata"] for each in decoded("request", frame, "--text")["body"]["protocols"]]

    assert plain == ["4772c3bcc39f65", "ff", "0061", ""]
    assert text == ["Grüße", "ff", "0061", ""]


@pytest.mark.parametrize("name", ["heartbeat", "Heartbeat", "12"])
def test_api_of_a_response_is_a_name_or_key(name: str) -> None:
    frame = "00000007 00 00000000 001b 00"

    assert decoded("response", "--api", name, "--version", "4", frame) == {
        "api": "Heartbeat",
        "version": 4,
        "header": {"correlation_id": 7},
        "body": {"throttle_time_ms": 0, "error_code": 27},
    }


@pytest.mark.parametrize("name", ["join-group", "JoinGroup", "join_group", "JOINGROUP"])
def test_api_name_is_accepted_in_all_common_spellings(name: str) -> None:
    frame = encode_response(k11_join_group.JoinGroupResponse(protocol_name=""), 0, 1).hex()

    assert decoded("response", "--api", name, "--version", "0", frame)["api"] == "JoinGroup"


def test_correlation_id_equal_to_the_length_is_not_a_prefix() -> None:
    frame = "00000002 001b"

    response = decoded("response", "--api", "heartbeat", "--version", "0", frame)

    assert response["header"] == {"correlation_id": 2}


def test_uuid_has_its_canonical_form() -> None:
    partitions = TopicPartitions(topic_id=Uuid(bytes(range(16))), partitions=(Partition(3),))
    body = ConsumerGroupHeartbeatResponse(assignment=Assignment(topic_partitions=(partitions,)))

    frame = encode_response(body, 1, 1).hex()

    response = decoded("response", "--api", "68", "--version", "1", frame)
    assert response["body"]["assignment"] == {
        "topic_partitions": [
            {"topic_id": "00010203-0405-0607-0809-0a0b0c0d0e0f", "partitions": [3]}
        ]
    }


def test_unsupported_api_versions_response_is_decoded_as_version_0() -> None:
    response_body = k18_api_versions.ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)

    frame = encode_response(response_body, 0, 1).hex()

    response = decoded("response", "--api", "api-versions", "--version", "4", frame)
    assert response["version"] == 0
    assert response["body"] == {"error_code": 35, "api_keys": []}


@pytest.mark.parametrize("api", all_apis(), ids=lambda api: api.name)
def test_every_version_of_every_api_is_decoded(api: Any) -> None:
    for version in api.versions:
        request = decoded("request", encode_request(api.request(), version, 1, "c").hex())
        frame = encode_response(api.response(), version, 1).hex()
        response = decoded("response", "--api", str(api.key), "--version", str(version), frame)

        assert request["api"] == response["api"] == api.name
        assert request["version"] == response["version"] == version


# Batches and records


def new_batch(value: bytes, codec: batch.Codec = batch.Codec.NONE) -> bytes:
    header = batch.Header(key="h", value=None)
    record = batch.NewRecord(key=b"k", value=value, timestamp=Millis(5), headers=(header,))
    return batch.encode(batch.NewBatch(records=(record,), codec=codec))


def test_batch_has_header_and_records() -> None:
    (only,) = decoded("batch", new_batch(b"v", batch.Codec.GZIP).hex(), "--text")

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


def test_consecutive_batches_are_all_decoded() -> None:
    data = new_batch(b"one") + new_batch(b"two")

    both = decoded("batch", data.hex(), "--text")
    framed = decoded("batch", len(data).to_bytes(4).hex() + data.hex(), "--text")

    assert [each["records"][0]["value"] for each in both] == ["one", "two"]
    assert framed == both


def test_offset_commit_has_the_fields_of_its_version() -> None:
    value = "0003 000000000000002a ffffffff 0002 6869 0000000000000005"

    assert decoded("offsets-record", "--key", KEY, "--value", value) == {
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


def test_record_without_value_is_a_tombstone() -> None:
    record = decoded("offsets-record", "--key", "-", stdin=KEY)

    assert record["value_version"] is None
    assert record["value"] is None


def test_group_metadata_has_its_members() -> None:
    key = consumer_offsets.GroupMetadataKey(group=GroupId("g"))
    member = consumer_offsets.MemberMetadata(member_id=MemberId("m"), subscription=b"\x00\x01")
    value = consumer_offsets.GroupMetadataValue(protocol_type="consumer", members=(member,))

    record = decoded(
        "offsets-record",
        *("--key", consumer_offsets.encode_key(key).hex()),
        *("--value", consumer_offsets.encode_value(value, 3).hex()),
    )

    assert record["kind"] == "GroupMetadata"
    assert record["value"]["members"][0]["member_id"] == "m"
    assert record["value"]["members"][0]["subscription"] == "0001"


# Invalid input


def test_truncated_message_error_names_field_and_position() -> None:
    error = input_error("request", bytes.fromhex(HEARTBEAT)[:-3].hex())

    assert error.startswith("Cannot decode HeartbeatRequest v4: member_id at byte 19: ")


def test_position_counts_from_the_first_byte_of_input() -> None:
    cut = bytes.fromhex(HEARTBEAT)[:-3]

    error = input_error("request", (len(cut).to_bytes(4) + cut).hex())

    assert error.startswith("Cannot decode HeartbeatRequest v4: member_id at byte 23: ")


def test_trailing_bytes_of_a_response_are_counted() -> None:
    arguments = ("response", "--api", "heartbeat", "--version", "4")

    error = input_error(*arguments, "00000007 00 00000000 0000 00 ffff")

    assert "end at byte 12: 2 bytes after the message" in error


def test_trailing_bytes_of_a_request_are_ignored_as_by_a_broker() -> None:
    assert decoded("request", HEARTBEAT + "ffff") == decoded("request", HEARTBEAT)


def test_unsupported_version_error_names_supported_versions() -> None:
    assert input_error("request", "000c 0009") == (
        "Heartbeat version 9 is not supported, only 0 to 4."
    )


def test_unsupported_api_key_is_named() -> None:
    assert input_error("request", "0063 0000") == "API key 99 is not supported."


def test_wrong_length_prefix_is_mentioned() -> None:
    error = input_error("request", "00000016" + HEARTBEAT[:-2])

    assert error.endswith("If the message begins with its length, that is 22, but 21 bytes follow.")


def test_batch_with_wrong_checksum_is_rejected() -> None:
    damaged = bytearray(new_batch(b"v"))
    damaged[-1] ^= 1

    assert input_error("batch", damaged.hex()).startswith(
        "Cannot decode RecordBatch: crc at byte 17: "
    )


def test_record_of_unknown_kind_is_rejected() -> None:
    assert input_error("offsets-record", "--key", "0063") == (
        "Record key version 99 is not supported."
    )


def test_value_of_unknown_version_is_rejected() -> None:
    error = input_error("offsets-record", "--key", KEY, "--value", "0063")

    assert error == "OffsetCommitValue version 99 is not supported."


@pytest.mark.parametrize(
    ("digits", "error"),
    [
        ("00 1g", "Character 5, 'g', is not a hexadecimal digit."),
        ("0x00 0x1\x1b", "Character 9, '\\x1b', is not a hexadecimal digit."),
        ("00 1 00", "Odd number of digits from character 4 on: 1."),
        ("", "There are no bytes to decode."),
        (" : ", "There are no bytes to decode."),
    ],
)
def test_invalid_digit_error_has_its_position(digits: str, error: str) -> None:
    assert input_error("request", digits) == error


def test_binary_stdin_is_rejected() -> None:
    assert input_error("batch", "-", stdin=b"\xff\x00").startswith("Character 1, ")


# Usage errors


def test_misspelt_api_gets_a_suggestion() -> None:
    error = usage_error("response", "--api", "hartbeat", "--version", "4", "00")

    assert "there is no API 'hartbeat'. Did you mean Heartbeat?" in error


def test_unknown_api_gets_no_suggestion() -> None:
    error = usage_error("response", "--api", "99", "--version", "4", "00")

    assert "there is no API '99'." in error
    assert "Did you mean" not in error


def test_invalid_version_option_names_supported_versions() -> None:
    error = usage_error("response", "--api", "heartbeat", "--version", "5", "00")

    assert "Heartbeat has versions 0 to 4." in error


def test_response_needs_the_api_option() -> None:
    assert "--api" in usage_error("response", "00")


def test_only_one_of_key_and_value_is_read_from_stdin() -> None:
    error = usage_error("offsets-record", "--key", "-", "--value", "-")

    assert "only one of --key and --value can be read from stdin." in error


@given(data=st.binary(), command=st.sampled_from(["request", "response", "batch", "record"]))
def test_random_bytes_never_cause_a_traceback(data: bytes, command: str) -> None:
    arguments = {
        "request": ("request", "-"),
        "response": ("response", "--api", "metadata", "--version", "12", "-"),
        "batch": ("batch", "-"),
        "record": ("offsets-record", "--key", KEY, "--value", "-"),
    }

    result = decode(*arguments[command], stdin=data.hex())

    assert result.exit_code in (0, 1)
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_unknown_type_has_no_json_form() -> None:
    with pytest.raises(TypeError, match="is not a decoded value"):
        jsonable(object())


def test_fields_keep_their_declared_order() -> None:
    key = jsonable(consumer_offsets.OffsetCommitKey(topic=Topic("t"), partition=Partition(2)))

    assert isinstance(key, dict)
    assert list(key.items()) == [("group", ""), ("topic", "t"), ("partition", 2)]
