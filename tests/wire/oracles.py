"""Two independent codecs of the same messages, each asked for the bytes of one of our values.

The value is handed over field by field and by name. A field of ours that the oracle lacks, or the
other way round, fails the test rather than passing unseen.
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
from kohort.wire import embedded, header
from kohort.wire.schema import Field, schema_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


class Oracle(Protocol):
    """Another codec. `tame` brings into its range what our types can say and its cannot."""

    def knows(self, cls: type, version: int) -> bool: ...

    def tame(self, value: Any, version: int) -> Any: ...

    def encode(self, value: Any, version: int) -> bytes: ...

    def frame(
        self, value: Any, version: int, correlation_id: int, client_id: str | None
    ) -> bytes: ...


class Kio:
    """kio has a dataclass per struct and version; times and errors are objects of their own."""

    def __repr__(self) -> str:
        return "kio"

    def knows(self, cls: type, version: int) -> bool:
        try:
            _find_kio_entity(cls, version)
        except kio.index.KioIndexError:
            return False
        return True

    def tame(self, value: Any, version: int) -> Any:
        return _tame_for_kio(value, _find_kio_entity(type(value), version))

    def encode(self, value: Any, version: int) -> bytes:
        entity = _find_kio_entity(type(value), version)
        buffer = io.BytesIO()
        entity_writer(entity)(buffer, _to_kio(value, version, entity))
        return buffer.getvalue()

    def frame(self, value: Any, version: int, correlation_id: int, client_id: str | None) -> bytes:
        """It leaves it to its user to put header and length before a message."""
        entity = _find_kio_entity(type(value), version)
        facts = {
            "request_api_key": entity.__api_key__,
            "request_api_version": version,
            "correlation_id": correlation_id,
            "client_id": client_id,
        }
        head = entity.__header_schema__
        buffer = io.BytesIO()
        entity_writer(head)(
            buffer, head(**{f.name: facts[f.name] for f in dataclasses.fields(head)})
        )
        payload = buffer.getvalue() + self.encode(value, version)
        return len(payload).to_bytes(4, "big") + payload


class KafkaPython:
    """kafka-python has a class per message, made from Kafka's own definitions."""

    def __repr__(self) -> str:
        return "kafka-python"

    def knows(self, cls: type, version: int) -> bool:
        message = _kafka_python_classes().get(_kafka_name(cls))
        if cls in _KAFKA_PYTHON_HEADERS:
            return version in _KAFKA_PYTHON_HEADERS[cls]
        return message is not None and version <= message.max_version

    def tame(self, value: Any, version: int) -> Any:  # noqa: ARG002  # as wide as ours
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
    """What Kafka calls a message; ours share its names, but for the embedded ones."""
    is_embedded = cls in (embedded.Subscription, embedded.Assignment)
    return f"ConsumerProtocol{cls.__name__}" if is_embedded else cls.__name__


def _living(cls: type, version: int) -> dict[str, Field]:
    return {f.name: f for f in schema_of(cls).fields if f.lives_in(version)}


# kio


def _find_kio_entity(cls: type, version: int) -> Any:
    load = kio.index.load_entity_schema
    if cls is header.RequestHeader:
        return load("request_header", version, EntityType.header)
    if cls is header.ResponseHeader:
        return load("response_header", version, EntityType.header)
    if cls is embedded.Subscription:
        return load("consumer_protocol_subscription", version, EntityType.data)
    if cls is embedded.Assignment:
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
    ours = _living(type(value), version)
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


def _tame_number(kafka_type: str, number: int) -> int:
    match kafka_type:
        case "error_code":  # an enum; a code of a newer broker has no member
            return _KIO_CODES[number % len(_KIO_CODES)]
        case "timedelta_i64":  # written by way of a float, which rounds from about here on
            return max(-(10**15), min(number, 10**15))
        case "datetime_i64":  # ends with the year 9999, and the time before 1970 is not for it
            return max(-1, min(number, 253_402_300_799_999))
        case _:
            return number


def _tame_for_kio(value: Any, entity: Any) -> Any:
    changes: dict[str, Any] = {}
    for our_name, _, kafka_type, nested in _kio_fields(entity):
        content = getattr(value, our_name)
        if nested is not None:
            changes[our_name] = _map(content, _kio_tamer(nested))
        elif kafka_type in _KIO_LEAVES and kafka_type != "uuid":
            changes[our_name] = _tame_number(kafka_type, content)
    return dataclasses.replace(value, **changes)


def _kio_tamer(entity: Any) -> Callable[[Any], Any]:
    return lambda value: _tame_for_kio(value, entity)


# kafka-python

_KAFKA_PYTHON_HEADERS = {header.RequestHeader: (1, 2), header.ResponseHeader: (0, 1)}
"""It does not number them, but has one form without tagged fields and one with."""


@cache
def _kafka_python_classes() -> dict[str, Any]:
    """Every class of its protocol modules, retired ones aside, by name."""
    with warnings.catch_warnings():
        # It reads its definitions in a way that the standard library has since retired.
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
    for name, ours in _living(type(value), version).items():
        # It calls both topic_authorized_operations and cluster_authorized_operations by less.
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
