"""Generated encoders and decoders: accepted values, errors, and error positions."""

import dataclasses
import tracemalloc
from collections.abc import Callable, Generator
from typing import Any, cast

import pytest

from kohort.types import ErrorCode, InstanceId, Topic
from kohort.wire import message_codec
from kohort.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k08_offset_commit import OffsetCommitRequest
from kohort.wire.api.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.api.k18_api_versions import ApiVersionsResponse
from kohort.wire.codegen_decode import ITEMS_PER_SLICE, STRING_BYTES_MAX, build_decoder
from kohort.wire.codegen_encode import build_encoder
from kohort.wire.errors import MalformedMessage, UnencodableMessage, UnsupportedVersion
from kohort.wire.message_codec import (
    decode,
    decoder,
    encode,
    encoder,
    sliced_decoder,
    sliced_encoder,
)
from kohort.wire.schema import int32, message, schema_of
from kohort.wire.varint import encode_uvarint
from tests.wire.samples import (
    Blobs,
    Branch,
    Leaf,
    Lists,
    NewerBranch,
    NewerLeaf,
    NewerTree,
    Numbers,
    OlderTree,
    PlainLists,
    PlainText,
    Tagged,
    Text,
    Tree,
)
from tests.wire.strategies import MESSAGES, VARIANTS, Message, build

FULL = VARIANTS[0]


def decode_error(cls: type, version: int, data: bytes) -> MalformedMessage:
    with pytest.raises(MalformedMessage) as error:
        decode(cls, version, data)
    assert 0 <= error.value.position <= len(data)
    return error.value


def encode_error(value: Any, version: int) -> UnencodableMessage:
    with pytest.raises(UnencodableMessage) as error:
        encode(value, version)
    return error.value


# Decoding


@pytest.mark.parametrize("version", range(4))
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_every_field_type_round_trip(version: int, variant: Any) -> None:
    tree = build(Tree, version, variant)

    assert decode(Tree, version, encode(tree, version)) == tree


def test_unknown_tags_are_skipped_at_every_level() -> None:
    leaf = NewerLeaf(name="leaf", number=1, hint=2, smell="resin")
    branch = NewerBranch(leaves=(leaf, leaf), first=leaf, angle=-1)
    newer = NewerTree(
        trunk=branch, branches=(branch,), epoch=7, moss=b"m", grafts=(leaf,), age=1, height=2
    )

    older = decode(OlderTree, 3, encode(newer, 3))

    expected = Leaf(name="leaf", number=1, hint=2)
    assert older.trunk == Branch(leaves=(expected, expected), first=expected)
    assert older == OlderTree(
        trunk=older.trunk, branches=(older.trunk,), epoch=7, grafts=(expected,)
    )


@pytest.mark.parametrize("tag", [5, 127, 128, 16_383, 16_384, 2**32 - 1])
def test_unknown_tag_with_any_number_is_skipped(tag: int) -> None:
    section = b"\x01" + encode_uvarint(tag) + b"\x03abc"

    assert decode(Text, 0, b"\x02x" + section) == Text(text="x")
    assert decode(Tagged, 0, section) == Tagged()


def test_known_tags_between_unknown_ones_are_decoded() -> None:
    section = b"\x03" + b"\x05\x01z" + b"\x00\x04\0\0\0\x09" + b"\x80\x01\x00"

    assert decode(Tagged, 0, section) == Tagged(epoch=9)


def test_tagged_field_with_its_default_is_not_encoded() -> None:
    assert encode(Tagged(), 0) == b"\x00"
    assert encode(Tagged(epoch=-1), 0) == b"\x00"
    assert encode(Tagged(epoch=0), 0) == b"\x01\x00\x04\0\0\0\0"


def test_null_tagged_struct_is_zero() -> None:
    assert encode(Tagged(leaf=None), 0) == b"\x01\x01\x01\x00"
    assert decode(Tagged, 0, b"\x01\x01\x01\x00") == Tagged(leaf=None)
    filled = b"\x01\x01\x08\x01" + b"\x02n\0\0\0\x05\x00"
    assert encode(Tagged(leaf=Leaf(name="n", number=5)), 0) == filled
    assert decode(Tagged, 0, filled) == Tagged(leaf=Leaf(name="n", number=5))


def test_tag_with_a_wrong_size_is_malformed() -> None:
    error = decode_error(Tagged, 0, b"\x01\x00\x05\0\0\0\0\0")

    assert error.field == "epoch"
    assert "does not match" in error.reason


def test_bytes_after_a_message_are_malformed() -> None:
    error = decode_error(Text, 0, b"\x02x\x00" + b"more")

    assert (error.field, error.position) == ("end", 3)
    assert "4 bytes after" in error.reason


def test_decoder_starts_at_a_position_and_ignores_trailing_bytes() -> None:
    assert decoder(Text, 0)(b"before\x02x\x00after", 6) == (Text(text="x"), 9)
    assert decode(Text, 0, b"before\x02x\x00", 6) == Text(text="x")


@pytest.mark.parametrize("message", MESSAGES, ids=str)
def test_message_truncated_at_any_byte_reports_field_and_position(message: Message) -> None:
    for version in {message.versions[0], message.versions[-1]}:
        whole = encode(build(message.cls, version, FULL), version)
        names = {field.name for field in schema_of(message.cls).fields} | {"tags"}

        for length in range(len(whole)):
            error = decode_error(message.cls, version, whole[:length])

            assert error.message == f"{message.cls.__name__} v{version}"
            assert error.field.split(".")[0].split("[")[0] in names
            assert error.reason


def test_truncated_numbers_report_the_truncated_one() -> None:
    whole = encode(Numbers(first=1, second=2, third=3), 0)

    assert [decode_error(Numbers, 0, whole[:length]).field for length in range(11)] == [
        *["first"] * 1,
        *["second"] * 2,
        *["third"] * 8,
    ]
    assert [decode_error(Numbers, 0, whole[:length]).position for length in (0, 2, 10)] == [0, 1, 3]


TOO_LARGE = {
    "a string": (Text, b"\xff\xff\xff\xff\x0f", "text"),
    "an old string": (PlainText, b"\x7f\xff", "text"),
    "an old string, negative": (PlainText, b"\xff\xfe", "text"),
    "bytes": (Blobs, b"\x7f\xff\xff\xff", "data"),
    "bytes, negative": (Blobs, b"\x80\0\0\0", "data"),
    "numbers": (Lists, b"\x80\x80\x80\x80\x08", "numbers"),
    "structs": (Lists, b"\x01\x80\x80\x80\x80\x08", "leaves"),
    "strings": (Lists, b"\x01\x01\x80\x80\x80\x80\x08", "words"),
    "numbers, the old way": (PlainLists, b"\x7f\xff\xff\xff", "numbers"),
    "numbers, negative": (PlainLists, b"\xff\xff\xff\xfe", "numbers"),
    "structs, the old way": (PlainLists, b"\0\0\0\0\x7f\xff\xff\xff", "leaves"),
    "structs, negative": (PlainLists, b"\0\0\0\0\xff\xff\xff\xff", "leaves"),
    "tags": (Tagged, b"\xff\xff\xff\xff\x0f\x05", "tags"),
    "a known tag": (Tagged, b"\x01\x00\xff\xff\xff\xff\x0f", "tags"),
    "an unknown tag": (Tagged, b"\x01\x09\xff\xff\xff\xff\x0f", "tags"),
    "tags that none are known of": (Text, b"\x01\xff\xff\xff\xff\x0f\x05", "tags"),
    "a number without end": (Text, b"\xff\xff\xff\xff\xff", "text"),
}


@pytest.mark.parametrize(("cls", "start", "field"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_too_large_length_is_rejected_before_allocation(
    cls: type, start: bytes, field: str
) -> None:
    data = start.ljust(64, b"\xff")
    decoder(cls, 0)

    tracemalloc.start()
    error = decode_error(cls, 0, data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert error.field == field
    assert peak < 100_000


def test_invalid_utf_8_is_malformed() -> None:
    error = decode_error(Text, 0, b"\x03\xc3\x28\x00")

    assert (error.field, error.position, error.reason) == ("text", 1, "not UTF-8")


@pytest.mark.parametrize(
    ("cls", "data", "field"),
    [
        (Text, b"\x00\x00", "text"),
        (PlainText, b"\xff\xff", "text"),
        (Blobs, b"\xff\xff\xff\xff", "data"),
        (Lists, b"\x00", "numbers"),
        (Lists, b"\x01\x00", "leaves"),
        (PlainLists, b"\xff\xff\xff\xff", "numbers"),
    ],
)
def test_null_in_a_non_nullable_field_is_malformed(cls: type, data: bytes, field: str) -> None:
    assert decode_error(cls, 0, data.ljust(8, b"\0")).field == field


def test_error_in_an_array_has_its_index() -> None:
    good, bad = b"\x02n\0\0\0\x05\x00", b"\x02\xff\0\0\0\x05\x00"
    error = decode_error(Lists, 0, b"\x01\x04" + good + good + bad)

    assert error.field == "leaves[2].name"
    assert str(error) == "Lists v0: leaves[2].name at byte 17: not UTF-8"


# Encoding


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"small": 128}, "small"),
        ({"short": -(2**15) - 1}, "short"),
        ({"wide": 2**63}, "wide"),
        ({"port": -1}, "port"),
        ({"size": 2**32}, "size"),
        ({"size": "seven"}, "size"),
        ({"numbers": (1, 2**31)}, "numbers"),
        ({"id": bytes(15)}, "id"),
        ({"ids": (bytes(16), bytes(17))}, "ids[1]"),
        ({"label": None}, "label"),
        ({"label": "\ud800"}, "label"),
        ({"data": None}, "data"),
        ({"branches": None}, "branches"),
        ({"numbers": None}, "numbers"),
        ({"words": ("", None)}, "words[1]"),
        ({"trunk": None}, "trunk"),
        ({"trunk": Branch(first=Leaf(number=2**31))}, "trunk.first.number"),
        (
            {"branches": (Branch(), Branch(leaves=(Leaf(), Leaf(number=2**31))))},
            "branches[1].leaves[1].number",
        ),
        ({"branches": (Branch(), None)}, "branches[1]"),
        ({"grafts": (Leaf(), Leaf(name=cast("str", None)))}, "grafts[1].name"),
        ({"epoch": 2**31}, "epoch"),
        ({"shoot": Leaf(hint=2**31)}, "shoot.hint"),
    ],
)
def test_invalid_value_is_unencodable_with_its_field(changes: dict[str, Any], field: str) -> None:
    error = encode_error(dataclasses.replace(Tree(), **changes), 3)

    assert error.field == field
    assert error.message == "Tree v3"
    assert error.reason


def test_string_too_long_for_two_length_bytes_is_unencodable() -> None:
    assert len(encode(PlainText(text="x" * 32_767), 0)) == 2 + 32_767
    assert encode_error(PlainText(text="x" * 32_768), 0).field == "text"


def test_field_missing_in_the_version_is_unencodable_unless_ignorable() -> None:
    error = encode_error(Tree(kept=5), 0)

    assert (error.field, error.reason) == ("kept", "version 0 does not have this field")
    assert encode(Tree(dropped=5), 0) == encode(Tree(), 0)
    assert encode(Tree(dropped=5), 1) != encode(Tree(), 1)


def test_nested_field_missing_in_the_version_reports_its_index() -> None:
    protocols = (JoinGroupRequestProtocol(name="a"), JoinGroupRequestProtocol(name="b" * 40_000))
    error = encode_error(JoinGroupRequest(protocols=protocols), 5)

    assert error.field == "protocols[1].name"
    assert (
        encode_error(JoinGroupRequest(group_instance_id=InstanceId("i")), 4).field
        == "group_instance_id"
    )
    assert encode(JoinGroupRequest(reason="why"), 7) == encode(JoinGroupRequest(), 7)


def test_error_code_enum_is_encoded_as_its_number() -> None:
    data = encode(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION), 0)

    assert decode(ApiVersionsResponse, 0, data).error_code == 35


# Compiling


def test_a_version_outside_the_declared_ones_is_unsupported() -> None:
    with pytest.raises(UnsupportedVersion) as error:
        encode(OffsetCommitRequest(), 1)
    assert (error.value.api_key, error.value.version) == (8, 1)
    with pytest.raises(UnsupportedVersion, match="OffsetCommitRequest: version 11"):
        decode(OffsetCommitRequest, 11, b"")


def test_functions_are_compiled_on_first_use_and_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[tuple[str, int]] = []

    def note(build: Callable[[type, int], Any]) -> Callable[[type, int], Any]:
        def noted(cls: type, version: int) -> Any:
            built.append((build.__name__, version))
            return build(cls, version)

        return noted

    monkeypatch.setattr(message_codec, "build_encoder", note(build_encoder))
    monkeypatch.setattr(message_codec, "build_decoder", note(build_decoder))

    @message(versions=(0, 1))
    class Fresh:
        number: int = int32()

    assert built == []
    assert decode(Fresh, 1, encode(Fresh(number=1), 1)) == Fresh(number=1)
    assert decode(Fresh, 1, encode(Fresh(number=2), 1)) == Fresh(number=2)
    assert built == [("build_encoder", 1), ("build_decoder", 1)]
    assert encoder(Fresh, 1) is encoder(Fresh, 1)


# Large messages, in slices


@pytest.mark.parametrize("message", MESSAGES, ids=str)
def test_slices_decode_and_encode_the_same_as_one_call(message: Message) -> None:
    version = message.versions[-1]
    for variant in VARIANTS:
        value = build(message.cls, version, variant)
        whole = encode(value, version)
        parts: list[bytes] = []

        _run(sliced_encoder(message.cls, version)(value, parts))
        decoded = _run(sliced_decoder(message.cls, version)(whole, 0, 1_000_000))

        assert b"".join(parts) == whole
        assert decoded == (decode(message.cls, version, whole), len(whole))


def test_large_message_yields_between_its_slices() -> None:
    topics = tuple(MetadataRequestTopic(name=Topic(f"t{number}")) for number in range(2_000))
    asked = MetadataRequest(topics=topics)
    data = encode(asked, 12)

    decoding = sliced_decoder(MetadataRequest, 12)(data, 0, 2_000)
    encoding = sliced_encoder(MetadataRequest, 12)(asked, [])

    assert sum(1 for _ in decoding) == sum(1 for _ in encoding) == 2_000 // ITEMS_PER_SLICE


def test_message_with_too_many_items_is_malformed() -> None:
    topics = tuple(MetadataRequestTopic(name=Topic("t")) for _ in range(4))
    data = encode(MetadataRequest(topics=topics), 12)

    with pytest.raises(MalformedMessage, match="more than 3 items"):
        _run(sliced_decoder(MetadataRequest, 12)(data, 0, 3))


def test_items_of_nested_arrays_count_together() -> None:
    topic = FetchTopic(topic=Topic("t"), partitions=(FetchPartition(),) * 3)
    data = encode(FetchRequest(topics=(topic,) * 3), 12)

    with pytest.raises(MalformedMessage, match="more than 10 items"):
        _run(sliced_decoder(FetchRequest, 12)(data, 0, 10))


def test_large_message_with_a_long_string_is_malformed() -> None:
    name = "n" * (STRING_BYTES_MAX + 1)
    asked = MetadataRequest(topics=(MetadataRequestTopic(name=Topic(name)),))
    data = encode(asked, 12)

    assert decode(MetadataRequest, 12, data) == asked
    with pytest.raises(MalformedMessage, match="32768 bytes exceed 32767"):
        _run(sliced_decoder(MetadataRequest, 12)(data, 0, 10))


def test_struct_with_too_many_unknown_tags_is_malformed() -> None:
    tags = b"".join(encode_uvarint(number) + b"\0" for number in range(101))
    data = encode(MetadataRequest(), 12)[:-1] + encode_uvarint(101) + tags

    with pytest.raises(MalformedMessage, match="101 tagged fields"):
        decode(MetadataRequest, 12, data)


def _run(steps: Generator[None, Any, Any]) -> Any:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value
