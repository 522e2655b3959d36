"""Two independent codecs, kio and kafka-python, that encode the same values for comparison.

Values are converted field by field by name. A field that only one side has is a test failure.
"""

import dataclasses
import importlib
import io
import pkgutil
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Protocol
from uuid import UUID

import kio.index
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_writer
from kio.static.constants import EntityType

from kohort.types import ZERO_UUID
from kohort.wire import consumer_protocol, header
from kohort.wire.schema import Field, schema_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


class Oracle(Protocol):
    """Another codec. `clamp` limits values to the range that it supports."""

    def knows(self, cls: type, version: int) -> bool: ...

    def clamp(self, value: Any, version: int) -> Any: ...

    def encode(self, value: Any, version: int) -> bytes: ...

    def frame(
        self, value: Any, version: int, correlation_id: int, client_id: str | None
    ) -> bytes: ...


class Kio:
    """kio has a dataclass per struct and version, and own types for times and errors."""

    def __repr__(self) -> str:
        return "kio"

    def knows(self, cls: type, version: int) -> bool:
        try:
            _find_kio_entity(cls, version)
        except kio.index.KioIndexError:
            return False
        return True

    def clamp(self, value: Any, version: int) -> Any:
        return _clamp_for_kio(value, _find_kio_entity(type(value), version))

    def encode(self, value: Any, version: int) -> bytes:
        entity = _find_kio_entity(type(value), version)
        buffer = io.BytesIO()
        entity_writer(entity)(buffer, _to_kio(value, version, entity))
        return buffer.getvalue()

    def frame(self, value: Any, version: int, correlation_id: int, client_id: str | None) -> bytes:
        """kio has no function that adds header and length."""
        entity = _find_kio_entity(type(value), version)
        header_values = {
            "request_api_key": entity.__api_key__,
            "request_api_version": version,
            "correlation_id": correlation_id,
            "client_id": client_id,
        }
        head = entity.__header_schema__
        buffer = io.BytesIO()
        entity_writer(head)(
            buffer, head(**{f.name: header_values[f.name] for f in dataclasses.fields(head)})
        )
        payload = buffer.getvalue() + self.encode(value, version)
        return len(payload).to_bytes(4, "big") + payload


class KafkaPython:
    """kafka-python has a class per message, generated from Kafka's definitions."""

    def __repr__(self) -> str:
        return "kafka-python"

    def knows(self, cls: type, version: int) -> bool:
        message = _kafka_python_classes().get(_kafka_name(cls))
        if cls in _KAFKA_PYTHON_HEADERS:
            return version in _KAFKA_PYTHON_HEADERS[cls]
        return message is not None and version <= message.max_version

    def clamp(self, value: Any, version: int) -> Any:  # noqa: ARG002  # as wide as ours
        return value

    def encode(self, value: Any, version: int) -> bytes:
        cls = type(value)
        message = _to_kafka_python(value, version, _kafka_python_classes()[_kafka_name(cls)])
        if cls in _KAFKA_PYTHON_HEADERS:
            return bytes(message.encode(flexible=schema_of(cls).is_flexible(version)))
        if schema_of(cls).api_key is None:
            return bytes(message.encode(header=False))
        assert schema_of(cls).api_key == message.API_KEY
        return bytes(message.encode())

    def frame(self, value: Any, version: int, correlation_id: int, client_id: str | None) -> bytes:
        cls = type(value)
        message = _to_kafka_python(value, version, _kafka_python_classes()[_kafka_name(cls)])
        message.with_header(correlation_id=correlation_id, client_id=client_id)
        return bytes(message.encode(header=True, framed=True))


def _kafka_name(cls: type) -> str:
    """Kafka's name of a message. Only the names of embedded data differ."""
    is_embedded = cls in (consumer_protocol.Subscription, consumer_protocol.Assignment)
    return f"ConsumerProtocol{cls.__name__}" if is_embedded else cls.__name__


def _present_fields(cls: type, version: int) -> dict[str, Field]:
    return {f.name: f for f in schema_of(cls).fields if f.exists_in(version)}


# kio


def _find_kio_entity(cls: type, version: int) -> Any:
    load = kio.index.load_entity_schema
    if cls is header.RequestHeader:
        return load("request_header", version, EntityType.header)
    if cls is header.ResponseHeader:
        return load("response_header", version, EntityType.header)
    if cls is consumer_protocol.Subscription:
        return load("consumer_protocol_subscription", version, EntityType.data)
    if cls is consumer_protocol.Assignment:
        return load("consumer_protocol_assignment", version, EntityType.data)
    key = schema_of(cls).api_key
    assert key is not None
    if cls.__name__.endswith("Request"):
        return kio.index.load_request_schema(key, version)
    return kio.index.load_response_schema(key, version)


@cache
def _kio_fields(entity: Any) -> tuple[tuple[str, str, str, Any], ...]:
    """For each field of an entity: our name for it, its own, its wire type, its nested entity."""
    return tuple(
        (
            f.name + "_ms" * kafka_type.startswith(("timedelta", "datetime")),
            f.name,
            kafka_type,
            _nested_entity(f.type),
        )
        for f in dataclasses.fields(entity)
        for kafka_type in [f.metadata.get("kafka_type", "entity")]
    )


def _nested_entity(annotation: Any) -> Any:
    """The entity inside `Entity`, `Entity | None`, `tuple[Entity, ...]` and its union with None."""
    if dataclasses.is_dataclass(annotation):
        return annotation
    nested = (_nested_entity(inner) for inner in getattr(annotation, "__args__", ()))
    return next((entity for entity in nested if entity is not None), None)


def _to_kio(value: Any, version: int, entity: Any) -> Any:
    ours = _present_fields(type(value), version)
    contents = {}
    for our_name, its_name, kafka_type, nested in _kio_fields(entity):
        del ours[our_name]
        content = getattr(value, our_name)
        if nested is not None:
            contents[its_name] = _map(content, _kio_converter(version, nested))
        else:
            contents[its_name] = _map(content, _KIO_LEAVES.get(kafka_type, _unchanged))
    assert not ours, f"{entity} lacks {set(ours)}"
    return entity(**contents)


def _kio_converter(version: int, entity: Any) -> Callable[[Any], Any]:
    return lambda value: _to_kio(value, version, entity)


def _map(content: Any, convert: Callable[[Any], Any]) -> Any:
    if content is None:
        return None
    if isinstance(content, tuple):
        return tuple(convert(item) for item in content)
    return convert(content)


def _unchanged(content: Any) -> Any:
    return content


_KIO_LEAVES: dict[str, Callable[[Any], Any]] = {
    "error_code": KioErrorCode,
    "timedelta_i32": lambda ms: ms * MILLISECOND,
    "timedelta_i64": lambda ms: ms * MILLISECOND,
    "datetime_i64": lambda ms: None if ms == -1 else EPOCH + ms * MILLISECOND,
    "uuid": lambda raw: None if raw == ZERO_UUID else UUID(bytes=raw),
}

_KIO_CODES = sorted(code.value for code in KioErrorCode)


def _clamp_number(kafka_type: str, number: int) -> int:
    match kafka_type:
        case "error_code":  # an enum without the codes of newer brokers
            return _KIO_CODES[number % len(_KIO_CODES)]
        case "timedelta_i64":  # converted to a float, which rounds larger numbers
            return max(-(10**15), min(number, 10**15))
        case "datetime_i64":  # from 1970 to 9999
            return max(-1, min(number, 253_402_300_799_999))
        case _:
            return number


def _clamp_for_kio(value: Any, entity: Any) -> Any:
    changes: dict[str, Any] = {}
    for our_name, _, kafka_type, nested in _kio_fields(entity):
        content = getattr(value, our_name)
        if nested is not None:
            changes[our_name] = _map(content, _kio_clamper(nested))
        elif kafka_type in _KIO_LEAVES and kafka_type != "uuid":
            changes[our_name] = _clamp_number(kafka_type, content)
    return dataclasses.replace(value, **changes)


def _kio_clamper(entity: Any) -> Callable[[Any], Any]:
    return lambda value: _clamp_for_kio(value, entity)


# kafka-python

_KAFKA_PYTHON_HEADERS = {header.RequestHeader: (1, 2), header.ResponseHeader: (0, 1)}
"""kafka-python has no header versions, only headers without and with tagged fields."""


@cache
def _kafka_python_classes() -> dict[str, Any]:
    """Every class of its protocol modules by name, without the old ones."""
    with warnings.catch_warnings():
        # It uses a deprecated function of the standard library.
        warnings.simplefilter("ignore", DeprecationWarning)
        path = importlib.import_module("kafka.protocol").__path__
        names = [module.name for module in pkgutil.walk_packages(path, "kafka.protocol.")]
        modules = [importlib.import_module(n) for n in names if ".old" not in n]
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type)
    }


def _to_kafka_python(value: Any, version: int, message: Any) -> Any:
    contents = {}
    theirs = {n: f for n, f in message.fields.items() if f.for_version_q(version)}
    for name, ours in _present_fields(type(value), version).items():
        # It omits the prefix of topic_authorized_operations and cluster_authorized_operations.
        its_name = name if name in theirs else name.partition("_")[2]
        its_field = theirs.pop(its_name)
        content = getattr(value, name)
        if ours.tag is not None and content == ours.default:
            continue  # its own default for a tagged struct is null
        contents[its_name] = _map(content, _kafka_python_converter(version, its_field))
    assert not theirs, f"{type(value)} lacks {set(theirs)}"
    return message(version=version, **contents)


def _kafka_python_converter(version: int, field: Any) -> Callable[[Any], Any]:
    if field.is_struct() or field.is_struct_array():
        return lambda value: _to_kafka_python(value, version, field.data_class)
    if field.type_str == "uuid":
        return lambda raw: UUID(bytes=raw)
    if field.type_str == "bitfield":  # a set of bit numbers
        return lambda number: {bit for bit in range(32) if number >> bit & 1}
    return _unchanged


ORACLES: tuple[Oracle, ...] = (Kio(), KafkaPython())
