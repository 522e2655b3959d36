"""Fuzzing of all decoders of external bytes.

Decoders raise only WireError, and every decoded value can be encoded and decoded again. Inputs are
valid encodings that are truncated, flipped, extended, spliced or given wrong lengths, and some
random bytes. Each run uses a new seed; a failure reports it.
"""

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from kohort.types import ErrorCode
from kohort.wire import consumer_protocol
from kohort.wire.api import Api, all_apis
from kohort.wire.consumer_offsets import (
    RECORD_SCHEMAS,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from kohort.wire.consumer_protocol import Assignment, Subscription, encode_versioned
from kohort.wire.envelope import (
    decode_request,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    peek_request,
)
from kohort.wire.errors import WireError
from kohort.wire.header import RequestHeader, ResponseHeader
from kohort.wire.message_codec import decode, encode
from kohort.wire.schema import schema_of
from tests.wire.strategies import MESSAGES, VARIANTS, build

SEED = int(os.environ.get("FUZZ_SEED") or random.SystemRandom().randrange(2**32))
INPUTS_PER_TARGET = 500
SMALL = [each for each in VARIANTS if not each.name.startswith(("longer than two", "many"))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A decoder, its encoder, and valid input."""

    name: str
    samples: tuple[bytes, ...]
    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]


# Targets


def find_targets() -> Iterator[Target]:
    for message in MESSAGES:
        yield from bodies(message.cls)
    for cls in (RequestHeader, ResponseHeader):
        yield from bodies(cls)
    for api in all_apis():
        yield requests(api)
        yield from responses(api)
    yield embedded_data(
        Subscription, consumer_protocol.decode_subscription, consumer_protocol.encode_subscription
    )
    yield embedded_data(
        Assignment, consumer_protocol.decode_assignment, consumer_protocol.encode_assignment
    )
    for number in RECORD_SCHEMAS:
        yield keys(number)
        yield record_values(number)


def bodies(cls: type) -> Iterator[Target]:
    for version in schema_of(cls).versions:
        yield Target(
            name=f"{cls.__name__} v{version}",
            samples=tuple(encode(build(cls, version, v), version) for v in SMALL),
            decode=partial(decode, cls, version),
            encode=partial(encode, version=version),
        )


def requests(api: Api) -> Target:
    def decode_all(frame: bytes) -> Any:
        peek_request(frame)
        decode_request_header(frame)
        return decode_request(frame)

    def encode_again(request: tuple[RequestHeader, Any]) -> bytes:
        header, body = request
        version, correlation_id = header.request_api_version, header.correlation_id
        return encode_request(body, version, correlation_id, header.client_id)[4:]

    return Target(
        name=f"{api.name} request frame",
        samples=tuple(
            encode_request(build(api.request, version, v), version, 1, "client")[4:]
            for version in api.versions
            for v in SMALL
        ),
        decode=decode_all,
        encode=encode_again,
    )


def responses(api: Api) -> Iterator[Target]:
    version = api.versions[-1]

    def encode_again(response: tuple[int, Any]) -> bytes:
        correlation_id, body = response
        is_refusal = api.key == 18 and body.error_code == ErrorCode.UNSUPPORTED_VERSION
        return encode_response(body, 0 if is_refusal else version, correlation_id)[4:]

    yield Target(
        name=f"{api.name} response frame",
        samples=tuple(
            encode_response(build(api.response, version, v), version, 1)[4:] for v in SMALL
        ),
        decode=lambda frame: decode_response(frame, api.key, version),
        encode=encode_again,
    )


def embedded_data(
    cls: type, decode: Callable[[bytes], Any], encode: Callable[[Any], bytes]
) -> Target:
    return Target(
        name=f"embedded {cls.__name__}",
        samples=tuple(
            encode_versioned(build(cls, version, v), version)
            for version in schema_of(cls).versions
            for v in SMALL
        ),
        decode=decode,
        encode=encode,
    )


def keys(number: int) -> Target:
    cls = RECORD_SCHEMAS[number].key
    return Target(
        name=f"record key {number}",
        samples=tuple(encode_versioned(build(cls, number, v), number) for v in SMALL),
        decode=decode_key,
        encode=encode_key,
    )


def record_values(number: int) -> Target:
    kind = RECORD_SCHEMAS[number]
    versions = schema_of(kind.value).versions
    return Target(
        name=f"record value {number}",
        samples=tuple(
            encode_value(build(kind.value, version, v), version)
            for version in versions
            for v in SMALL
        ),
        decode=lambda data: (data[:2], decode_value(kind.key(), data)),
        encode=lambda value: encode_value(value[1], int.from_bytes(value[0], "big")),
    )


# Corruption

FALSE_LENGTHS = (
    *(bytes([n]) for n in (0, 1, 0x7F, 0x80, 0xFF)),
    *(n.to_bytes(2, "big") for n in (0, 1, 0x7FFF, 0x8000, 0xFFFF, 0xFFFE)),
    *(n.to_bytes(4, "big") for n in (0, 1, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**32 - 2)),
    *(bytes.fromhex(n) for n in ("8001", "ff7f", "ffffffff07", "ffffffff0f", "ffffffffff")),
)


def noise(source: random.Random) -> bytes:
    return source.randbytes(source.randrange(80))


def damage(source: random.Random, data: bytes, other: bytes) -> bytes:
    place = source.randrange(len(data) + 1)
    match source.randrange(7):
        case 0:
            flipped = data[place : place + 1] or b"\0"
            return data[:place] + bytes([flipped[0] ^ 1 << source.randrange(8)]) + data[place + 1 :]
        case 1:
            return data[:place] + source.randbytes(1) + data[place + 1 :]
        case 2:
            return data[:place]
        case 3:
            return data[:place] + source.randbytes(source.randrange(1, 6)) + data[place:]
        case 4:
            return data[:place] + other[source.randrange(len(other) + 1) :]
        case 5:
            return data[:place] + data[place + source.randrange(1, 6) :]
        case _:
            length = source.choice(FALSE_LENGTHS)
            return data[:place] + length + data[place + len(length) :]


def inputs(target: Target) -> Iterator[bytes]:
    source = random.Random(f"{SEED} {target.name}")  # noqa: S311  # nothing here is secret
    for _ in range(INPUTS_PER_TARGET):
        if source.randrange(10) == 0:
            yield noise(source)
            continue
        data = source.choice(target.samples)
        for _ in range(source.choice((1, 1, 1, 2, 3))):
            data = damage(source, data, source.choice(target.samples))
        yield data


# Checks

TARGETS = tuple(find_targets())


def check(target: Target, data: bytes) -> bool:
    """Whether the bytes could be decoded. If so, they are encoded and decoded again."""
    try:
        value = target.decode(data)
    except WireError:
        return False
    assert target.decode(target.encode(value)) == value
    return True


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_corrupt_bytes_are_rejected_or_decoded(target: Target) -> None:
    for data in (*target.samples, *inputs(target)):
        try:
            check(target, data)
        except Exception as error:
            error.add_note(f"FUZZ_SEED={SEED} {target.name}: {data.hex()}")
            raise


def test_fuzzing_reaches_both_outcomes() -> None:
    outcomes = [check(target, data) for target in TARGETS[:40] for data in inputs(target)]

    assert 0.05 < sum(outcomes) / len(outcomes) < 0.95
