"""Sample declarations with every field type and every kind of nesting."""

from kohort.wire.schema import (
    array,
    blob,
    boolean,
    float64,
    int8,
    int16,
    int32,
    int64,
    message,
    part,
    string,
    struct,
    uint16,
    uint32,
    uuid,
)


@part
class Leaf:
    name: str = string()
    number: int = int32()
    hint: int = int32(since=2, tag=0)


@part
class Branch:
    leaves: tuple[Leaf, ...] = array(Leaf)
    first: Leaf = struct(Leaf)


@message(versions=(0, 3), flexible_since=2)
class Tree:
    label: str = string()
    note: str | None = string(nullable_since=0, default=None)
    data: bytes = blob()
    extra: bytes | None = blob(nullable_since=0, default=None)
    small: int = int8()
    short: int = int16()
    wide: int = int64()
    port: int = uint16()
    size: int = uint32()
    ratio: float = float64()
    flag: bool = boolean()
    id: bytes = uuid()
    ids: tuple[bytes, ...] = array("uuid")
    numbers: tuple[int, ...] = array("int32")
    words: tuple[str, ...] | None = array("string", nullable_since=1)
    trunk: Branch = struct(Branch)
    twig: Leaf | None = struct(Leaf, since=2, nullable_since=2, default=None)
    branches: tuple[Branch, ...] = array(Branch)
    dropped: int = int32(since=1, ignorable=True)
    kept: int = int32(since=1)
    epoch: int = int32(since=2, tag=0, default=-1)
    grafts: tuple[Leaf, ...] = array(Leaf, since=2, tag=2)
    shoot: Leaf | None = struct(Leaf, since=2, nullable_since=2, default=None, tag=3)


@part
class NewerLeaf:
    name: str = string()
    number: int = int32()
    hint: int = int32(tag=0)
    smell: str = string(tag=128, default="none")


@part
class NewerBranch:
    leaves: tuple[NewerLeaf, ...] = array(NewerLeaf)
    first: NewerLeaf = struct(NewerLeaf)
    angle: int = int64(tag=2_000_000_000)


@message(versions=(0, 3), flexible_since=2)
class NewerTree:
    """A newer version of Tree with more tagged fields in every struct."""

    trunk: NewerBranch = struct(NewerBranch)
    branches: tuple[NewerBranch, ...] = array(NewerBranch)
    epoch: int = int32(tag=0, default=-1)
    moss: bytes = blob(tag=1)
    grafts: tuple[NewerLeaf, ...] = array(NewerLeaf, tag=2)
    age: int = int32(tag=127)
    height: int = int32(tag=300)


@message(versions=(0, 3), flexible_since=2)
class OlderTree:
    trunk: Branch = struct(Branch)
    branches: tuple[Branch, ...] = array(Branch)
    epoch: int = int32(tag=0, default=-1)
    grafts: tuple[Leaf, ...] = array(Leaf, tag=2)


@message(versions=(0, 0), flexible_since=0)
class Text:
    text: str = string()


@message(versions=(0, 0))
class PlainText:
    text: str = string()


@message(versions=(0, 0))
class Blobs:
    data: bytes = blob()


@message(versions=(0, 0), flexible_since=0)
class Lists:
    numbers: tuple[int, ...] = array("int32")
    leaves: tuple[Leaf, ...] = array(Leaf)
    words: tuple[str, ...] = array("string")


@message(versions=(0, 0))
class PlainLists:
    numbers: tuple[int, ...] = array("int32")
    leaves: tuple[Leaf, ...] = array(Leaf)


@message(versions=(0, 0))
class Numbers:
    first: int = int8()
    second: int = int16()
    third: int = int64()


@message(versions=(0, 0), flexible_since=0)
class Tagged:
    epoch: int = int32(tag=0, default=-1)
    leaf: Leaf | None = struct(Leaf, nullable_since=0, tag=1)
