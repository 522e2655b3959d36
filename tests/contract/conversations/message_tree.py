"""Converts messages to plain trees.

Fields with their default value are left out, so that versions with and without a field look equal.
Error codes are shown by name, batches by their records. Ids are marked here; masks.py masks them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kohort.types import ZERO_UUID, ErrorCode
from kohort.wire.batch import Batch, decode, split
from kohort.wire.errors import MalformedMessage
from kohort.wire.schema import Field, schema_of

_BYTES_SHOWN_MAX: Final = 400

MESSAGE: Final = "<words>"
"""Stands for an error message: the texts differ between brokers, their presence does not."""


@dataclass(frozen=True, slots=True)
class Mark:
    """An id that a broker has generated, with its kind."""

    kind: str
    raw: object


@dataclass(frozen=True, slots=True)
class Heap:
    """Items whose order has no meaning."""

    items: list["Tree"]


Tree = dict[str, "Tree"] | list["Tree"] | str | int | float | bool | None | Mark | Heap

_UNORDERED: Final = {
    # Kafka has members in a map with random ids.
    ("JoinGroupResponse", "members"),
    ("DescribedGroup", "members"),
    # Kafka lists refused items before accepted ones.
    ("ListOffsetsResponse", "topics"),
    ("ListOffsetsTopicResponse", "partitions"),
    ("OffsetForLeaderTopicResult", "partitions"),
    ("DeleteRecordsTopicResult", "partitions"),
    ("ProduceResponse", "responses"),
    ("TopicProduceResponse", "partition_responses"),
    ("OffsetDeleteResponse", "topics"),
    ("OffsetDeleteResponseTopic", "partitions"),
    ("OffsetCommitResponse", "topics"),
    ("OffsetCommitResponseTopic", "partitions"),
    # Kafka orders groups by partition of the offsets topic.
    ("DescribeGroupsResponse", "groups"),
    ("DeleteGroupsResponse", "results"),
    # These come from maps.
    ("ListGroupsResponse", "groups"),
    ("MetadataResponse", "topics"),
    ("OffsetFetchResponseGroup", "topics"),
    ("OffsetFetchResponse", "topics"),
    ("OffsetFetchResponseTopic", "partitions"),
    ("OffsetFetchResponseTopics", "partitions"),
    ("CreateTopicsResponse", "topics"),
    ("CreatableTopicResult", "configs"),
    ("CreatePartitionsResponse", "results"),
    ("DeleteTopicsResponse", "responses"),
    ("DeleteRecordsResponse", "topics"),
    ("DescribeLogDirsResult", "topics"),
    ("DescribeLogDirsTopic", "partitions"),
    ("DescribeConfigsResponse", "results"),
    ("DescribeConfigsResult", "configs"),
    ("IncrementalAlterConfigsResponse", "responses"),
    ("ApiVersionsResponse", "supported_features"),
    ("ApiVersionsResponse", "finalized_features"),
}
"""Arrays without a meaningful order; in all others the order is compared."""


def show(message: object) -> Tree:
    """A decoded message as a tree."""
    schema = schema_of(type(message))
    shown: dict[str, Tree] = {}
    for field in schema.fields:
        content = getattr(message, field.name)
        if content == field.default and field.name != "error_code":
            continue
        shown[field.name] = _show_field(schema.name, field, content)
    return shown


def _show_field(struct: str, field: Field, content: Any) -> Tree:
    special = _SPECIAL.get(field.name)
    if content is None:
        return None
    if special is not None:
        return special(content)
    if field.kind == "uuid":
        return _show_uuid(content)
    if field.element is not None:
        items = [_show_item(field.element, item) for item in content]
        return Heap(items) if (struct, field.name) in _UNORDERED else items
    return _show_plain(content)


def _show_item(element: Field, item: Any) -> Tree:
    if element.struct is not None:
        return show(item)
    return _show_uuid(item) if element.kind == "uuid" else _show_plain(item)


def _show_plain(content: Any) -> Tree:
    match content:
        case bytes():
            return show_bytes(content)
        case None | str() | int() | float():
            return content
        case _:
            return show(content)


def _show_uuid(content: bytes) -> Tree:
    return "zero" if content == ZERO_UUID else Mark("id", content)


def show_bytes(data: bytes) -> str:
    """Text stays readable, so that names in it can be masked."""
    if len(data) > _BYTES_SHOWN_MAX:
        return f"<{len(data)} bytes>"
    return data.decode("latin-1").encode("unicode_escape").decode("ascii")


def _show_error(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)


def _show_words(text: str) -> str:
    return MESSAGE if text else text


def _show_producer(producer_id: int) -> Tree:
    return producer_id if producer_id < 0 else Mark("producer", producer_id)


def _show_records(data: bytes) -> Tree:
    shown: list[Tree] = []
    end = 0
    try:
        for at, header in split(data, truncated_ok=True):
            shown.append(_show_batch(decode(data, at)))
            end = at + header.size_in_bytes
    except MalformedMessage:
        return f"<{len(data)} bytes that are no batches>"
    if end < len(data):
        shown.append(f"<{len(data) - end} bytes of another>")
    return shown


def _show_batch(batch: Batch) -> Tree:
    header = batch.header
    shown: dict[str, Tree] = {
        "base_offset": header.base_offset,
        "last_offset_delta": header.last_offset_delta,
        "partition_leader_epoch": header.partition_leader_epoch,
        "attributes": header.attributes,
        "size": header.size_in_bytes,
        "max_timestamp": header.max_timestamp,
    }
    if header.producer_id >= 0:
        shown["producer_id"] = _show_producer(header.producer_id)
        shown["producer_epoch"] = header.producer_epoch
        shown["base_sequence"] = header.base_sequence
    shown["records"] = [
        [record.offset, record.timestamp, _show_nullable(record.key), _show_nullable(record.value)]
        for record in batch.records
    ]
    return shown


def _show_nullable(data: bytes | None) -> str | None:
    return None if data is None else show_bytes(data)


_SPECIAL: Final[dict[str, Callable[[Any], Tree]]] = {
    "error_code": _show_error,
    "error_message": _show_words,
    "batch_index_error_message": _show_words,
    "documentation": _show_words,
    "producer_id": _show_producer,
    "session_id": lambda number: Mark("session", number),
    "finalized_features_epoch": lambda number: Mark("epoch", number),
    "cluster_id": lambda text: Mark("cluster", text),
    "log_dir": lambda text: Mark("directory", text),
    "total_bytes": lambda number: Mark("volume", "total") if number >= 0 else number,
    "usable_bytes": lambda number: Mark("volume", "usable") if number >= 0 else number,
    "host": lambda text: Mark("host", text),
    "port": lambda number: Mark("port", number),
    "records": _show_records,
}
"""Fields with their own representation."""
