"""Declarations are consistent: annotations, wire types, versions, nulls and tags."""

import types
import typing
from pathlib import Path
from typing import Any

import pytest

from kohort.types import ZERO_UUID
from kohort.wire import api, consumer_offsets, consumer_protocol, header
from kohort.wire.api import FILES, KEYS, all_apis, find_api
from kohort.wire.schema import (
    Field,
    Schema,
    array,
    blob,
    boolean,
    float64,
    int32,
    message,
    part,
    schema_of,
    string,
    struct,
    uint16,
    uint32,
    uuid,
)

PYTHON_TYPES = {"string": str, "bytes": bytes, "uuid": bytes, "bool": bool, "float64": float}
"""The Python type of a wire type; all others are int."""


def find_declared() -> dict[type, range]:
    """Every declared class, nested ones too, with the versions of its message."""
    roots = [cls for each in all_apis() for cls in (each.request, each.response)]
    roots += [header.RequestHeader, header.ResponseHeader]
    roots += [consumer_protocol.Subscription, consumer_protocol.Assignment]
    roots += [
        cls for kind in consumer_offsets.RECORD_SCHEMAS.values() for cls in (kind.key, kind.value)
    ]
    found: dict[type, range] = {}
    for root in roots:
        add_with_nested(root, schema_of(root).versions, found)
    return found


def add_with_nested(cls: type, versions: range, found: dict[type, range]) -> None:
    found[cls] = versions
    for field in schema_of(cls).fields:
        nested = field.struct or (field.element and field.element.struct)
        if nested:
            add_with_nested(nested, versions, found)


VERSIONS = find_declared()

every_class = pytest.mark.parametrize(
    "cls", VERSIONS, ids=lambda cls: f"{cls.__module__.rpartition('.')[2]}.{cls.__name__}"
)


def resolve(annotation: Any) -> Any:
    """The supertype of a NewType, also of nested ones."""
    while hasattr(annotation, "__supertype__"):
        annotation = annotation.__supertype__
    return annotation


def expected_type(field: Field) -> Any:
    """The annotation without None: the element type for an array, the class for a struct."""
    of = field.element if field.kind == "array" else field
    assert of is not None
    if of.kind == "struct":
        return of.struct
    return PYTHON_TYPES.get(of.kind, int)


def split_null(annotation: Any) -> tuple[Any, bool]:
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        one, *others = [each for each in typing.get_args(annotation) if each is not types.NoneType]
        assert not others
        return one, True
    return annotation, False


@every_class
def test_annotations_match_the_wire_types(cls: type) -> None:
    hints = typing.get_type_hints(cls)

    for field in schema_of(cls).fields:
        annotation, may_be_null = split_null(hints[field.name])
        if field.kind == "array":
            assert typing.get_origin(annotation) is tuple, field.name
            annotation, ellipsis = typing.get_args(annotation)
            assert ellipsis is Ellipsis, field.name
        assert resolve(annotation) is expected_type(field), field.name
        assert may_be_null == (field.nullable_since is not None), field.name


@every_class
def test_defaults_are_valid_values(cls: type) -> None:
    for field in schema_of(cls).fields:
        if field.default is None:
            assert field.nullable_since is not None, field.name
            assert field.is_nullable(max(field.since, VERSIONS[cls][0])), field.name
        elif field.kind == "array":
            assert field.default == (), field.name
        elif field.kind == "struct":
            assert field.struct is not None
            assert field.default == field.struct(), field.name
        else:
            assert type(field.default) is PYTHON_TYPES.get(field.kind, int), field.name
        assert getattr(cls(), field.name) == field.default


@every_class
def test_tags_are_unique_and_start_at_zero(cls: type) -> None:
    tags = [field.tag for field in schema_of(cls).fields if field.tag is not None]

    assert sorted(tags) == list(range(len(tags)))


@pytest.mark.parametrize("api_key", KEYS)
def test_tagged_fields_need_a_flexible_version(api_key: int) -> None:
    each = get_api(api_key)
    for root in (each.request, each.response):
        flexible_since = schema_of(root).flexible_since
        nested: dict[type, range] = {}
        add_with_nested(root, each.versions, nested)
        for field in (f for cls in nested for f in schema_of(cls).fields if f.tag is not None):
            assert flexible_since is not None
            assert field.since >= flexible_since, f"{root.__name__}: {field.name}"


@every_class
def test_every_field_exists_in_some_version(cls: type) -> None:
    versions = VERSIONS[cls]

    for field in schema_of(cls).fields:
        assert any(field.exists_in(version) for version in versions), field.name
        assert 0 <= field.since <= versions[-1], field.name
        assert field.until is None or field.since <= field.until < versions[-1], field.name
        assert field.nullable_since is None or field.nullable_since <= versions[-1], field.name


@every_class
def test_declared_classes_are_slotted_values(cls: type) -> None:
    assert cls() == cls()
    assert not hasattr(cls(), "__dict__")


def get_api(key: int) -> api.Api:
    found = find_api(key)
    assert found is not None
    return found


def test_file_list_matches_the_directory() -> None:
    folder = Path(api.__file__).parent

    assert sorted(path.stem for path in folder.glob("k*.py")) == list(FILES)


def test_keys_are_sorted_and_match_the_files() -> None:
    assert list(KEYS) == sorted(set(KEYS))
    assert [f"k{key:02}" for key in KEYS] == [file[:3] for file in FILES]
    assert len(KEYS) == 35


@pytest.mark.parametrize("key", KEYS)
def test_request_and_response_have_the_same_key_and_versions(key: int) -> None:
    each = get_api(key)
    request, response = schema_of(each.request), schema_of(each.response)

    assert each.key == request.api_key == response.api_key == key
    assert each.versions == request.versions == response.versions
    assert each.flexible_since == request.flexible_since == response.flexible_since
    assert each.request.__name__ == f"{each.name}Request"
    assert each.response.__name__ == f"{each.name}Response"


def test_unknown_key_has_no_api() -> None:
    assert find_api(4) is None
    assert find_api(-1) is None


def test_schema_has_the_declared_field_properties() -> None:
    @part
    class Item:
        id: bytes = uuid()

    @message(versions=(1, 3), flexible_since=2, api_key=99)
    class Sample:
        number: int = int32(since=2, default=-1, ignorable=True)
        items: tuple[Item, ...] | None = array(Item, nullable_since=3)
        names: tuple[str, ...] = array("string", until=2)

    number, items, names = schema_of(Sample).fields

    assert schema_of(Sample) == Schema(
        name="Sample",
        fields=(number, items, names),
        versions=range(1, 4),
        flexible_since=2,
        api_key=99,
    )
    assert number == Field(kind="int32", since=2, default=-1, ignorable=True, name="number")
    assert items.element == Field(kind="struct", struct=Item)
    assert [items.is_nullable(version) for version in (1, 2, 3)] == [False, False, True]
    assert [names.exists_in(version) for version in (1, 2, 3)] == [True, True, False]
    assert [schema_of(Sample).is_flexible(version) for version in (1, 2, 3)] == [False, True, True]


def test_field_without_a_value_has_its_default() -> None:
    @part
    class Inner:
        number: int = int32()

    @part
    class Outer:
        text: str = string()
        data: bytes = blob()
        id: bytes = uuid()
        flag: bool = boolean()
        ratio: float = float64()
        port: int = uint16()
        size: int = uint32()
        inner: Inner = struct(Inner)
        inners: tuple[Inner, ...] = array(Inner)

    outer = Outer()

    assert (outer.text, outer.data, outer.id) == ("", b"", ZERO_UUID)
    assert (outer.flag, outer.ratio, outer.port, outer.size) == (False, 0.0, 0, 0)
    assert (outer.inner, outer.inners) == (Inner(number=0), ())
