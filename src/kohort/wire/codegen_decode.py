"""Generates the decode function of one message and version as straight-line Python.

Adjacent fields of constant width, and a length prefix after them, are read by one `struct` call.
Arrays become inline loops, so that a message is one function and each line belongs to a field.

For a large message there is a second form: a generator that yields after every ITEMS_PER_SLICE
array items, so that its caller can do something else in between, and that limits their number and
the length of strings.
"""

import struct
from collections.abc import Callable, Generator
from itertools import count
from typing import Any, Final

from kohort.wire.codegen import GeneratedSource, Item, Path
from kohort.wire.errors import MalformedMessage
from kohort.wire.schema import FIXED, Field, schema_of
from kohort.wire.varint import read_uvarint

_HEAD = """\
def decode(buf, pos):
    end = len(buf)
    try:"""
_SLICED_HEAD = """\
def decode(buf, pos, items_max):
    end = len(buf)
    done = items = 0
    if items:
        yield
    try:"""
_TAIL = """\
        return o0, pos
    except (IndexError, ValueError, struct_error) as error:
        raise explain(error) from None"""

ITEMS_PER_SLICE: Final = 512
"""Array items that are decoded or encoded between two yields; less than a millisecond."""

STRING_BYTES_MAX: Final = 2**15 - 1
"""The longest string in a large message; versions without compact lengths allow no longer one. It
limits the time of what is done with a string, such as a split, which cannot be sliced."""

_TAGS_MAX: Final = 100
"""Tagged fields of one struct. Limits the time that a section of unknown ones can take."""

Steps = Generator[None, Any, tuple[Any, int]]


def build_decoder(cls: type, version: int) -> Callable[[bytes, int], tuple[Any, int]]:
    """Build `decode(buf, pos) -> (value, next pos)`, which raises only MalformedMessage."""
    return _build(cls, version, _HEAD)


def build_sliced_decoder(cls: type, version: int) -> Callable[[bytes, int, int], Steps]:
    """Build `decode(buf, pos, items_max)`, a generator that returns the same.

    A message with more than `items_max` array items in total, or with a longer string than
    STRING_BYTES_MAX, is malformed.
    """
    return _build(cls, version, _SLICED_HEAD)


def _build(cls: type, version: int, head: str) -> Callable[..., Any]:
    schema = schema_of(cls)
    title = f"{schema.name} v{version}"
    writer = _DecoderWriter(
        version, is_flexible=schema.is_flexible(version), is_sliced=head is _SLICED_HEAD
    )
    writer.write_struct(cls, "o0", Path())
    source = writer.source

    def explain(error: Exception) -> MalformedMessage:
        return _explain(error, title, source.items_by_line)

    source.names |= {
        "new": object.__new__,
        "read_uvarint": read_uvarint,
        "skip_tags": _skip_tags,
        "struct_error": struct.error,
        "unpack_from": struct.unpack_from,
        "explain": explain,
    }
    return source.compile(f"decode {title}", head, _TAIL)


class _DecoderWriter:
    """Emits the lines that decode structs. `run` collects values for one unpack call."""

    def __init__(self, version: int, *, is_flexible: bool, is_sliced: bool) -> None:
        self.version = version
        self.is_flexible = is_flexible
        self.is_sliced = is_sliced
        self.source = GeneratedSource()
        self.run: list[Item] = []
        self.numbers = count(1)

    def write_struct(self, cls: type, target: str, path: Path) -> None:
        add = self.source.add
        self._flush()
        add(f"{target} = new({self._class(cls)})")
        fields = schema_of(cls).fields
        present = [f for f in fields if f.exists_in(self.version)]
        tagged = sorted((f for f in present if f.tag is not None), key=lambda f: f.tag or 0)
        absent = [f for f in fields if f not in present]
        for field in absent + tagged:
            add(f"{target}.{field.name} = {self.source.constant(field.default)}")
        for field in present:
            if field.tag is None:
                self.write_value(field, f"{target}.{field.name}", path.field(field.name))
        if self.is_flexible:
            self._write_tags(tagged, target, path)
        self._flush()

    def write_value(self, field: Field, target: str, path: Path) -> None:
        if field.kind in FIXED:
            self.run.append(Item(FIXED[field.kind], target, path))
        elif field.kind == "struct":
            self._write_nested(field, target, path)
        else:
            self._write_sized(field, target, path)

    def _write_nested(self, field: Field, target: str, path: Path) -> None:
        assert field.struct is not None
        name = f"o{next(self.numbers)}"
        if not field.is_nullable(self.version):
            self.write_struct(field.struct, name, path)
            self.source.add(f"{target} = {name}")
            return
        if field.tag is None:
            self.run.append(Item("b", "n", path))
            self._flush()
            self.source.indent("if n < 0:")
        else:  # Kafka is inconsistent: within a tag, a null struct is 0 and not -1.
            self.source.add("n, pos = read_uvarint(buf, pos)", Item("", "", path))
            self.source.indent("if n == 0:")
        self.source.add(f"{target} = None")
        self.source.dedent()
        self.source.indent("else:")
        self.write_struct(field.struct, name, path)
        self.source.add(f"{target} = {name}")
        self.source.dedent()

    def _write_sized(self, field: Field, target: str, path: Path) -> None:
        """Strings, bytes and arrays: a length, which may mean null, and the content."""
        source, here = self.source, Item("", "", path)
        is_compact = self.is_flexible and field.compact
        letter = "B" if is_compact else ("h" if field.kind == "string" else "i")
        self.run.append(Item(letter, "n", path))
        self._flush()
        if is_compact:
            source.indent("if n > 127:", here)
            source.add("n, pos = read_uvarint(buf, pos - 1)", here)
            source.dedent()
            source.add("n -= 1")
        if field.is_nullable(self.version):
            source.indent("if n == -1:")
            source.add(f"{target} = None")
            source.dedent()
            source.indent("else:")
        if field.kind == "array":
            self._write_items(field, target, path)
        else:
            if self.is_sliced and field.kind == "string":
                source.indent(f"if n > {STRING_BYTES_MAX}:", here)
                source.add(f"raise ValueError(f'{{n}} bytes exceed {STRING_BYTES_MAX}')", here)
                source.dedent()
            source.add("stop = pos + n")
            source.indent("if not pos <= stop <= end:", here)
            source.add("raise ValueError(f'length {n}, but {end - pos} bytes are left')", here)
            source.dedent()
            decode = ".decode()" if field.kind == "string" else ""
            source.add(f"{target} = buf[pos:stop]{decode}", here)
            source.add("pos = stop")
        if field.is_nullable(self.version):
            source.dedent()

    def _write_items(self, field: Field, target: str, path: Path) -> None:
        source, here, element = self.source, Item("", "", path), field.element
        assert element is not None
        smallest = self._smallest(element)
        source.indent(f"if not 0 <= n <= (end - pos) // {smallest}:", here)
        source.add("raise ValueError(f'{n} items, but {end - pos} bytes are left')", here)
        source.dedent()
        if self.is_sliced:
            source.add("items += n")
            source.indent("if items > items_max:", here)
            source.add("raise ValueError(f'more than {items_max} items in one message')", here)
            source.dedent()
        if element.kind in FIXED and element.kind != "uuid":
            source.add(f"{target} = unpack_from(f'>{{n}}{FIXED[element.kind]}', buf, pos)", here)
            source.add(f"pos += n * {smallest}")
            return
        number = next(self.numbers)
        items, one = f"items{number}", f"o{number}"
        source.add(f"{items} = []")
        source.indent("for _ in range(n):")
        if element.kind == "struct":
            assert element.struct is not None
            self.write_struct(element.struct, one, path.items(items))
        else:
            self.write_value(element, one, path.items(items))
            self._flush()
        source.add(f"{items}.append({one})")
        if self.is_sliced:
            source.add("done += 1")
            source.indent(f"if not done % {ITEMS_PER_SLICE}:")
            source.add("yield")
            source.dedent()
        source.dedent()
        source.add(f"{target} = tuple({items})")

    def _write_tags(self, tagged: list[Field], target: str, path: Path) -> None:
        """Decodes known tags and skips unknown ones, which newer peers may send."""
        source, here = self.source, Item("", "", path.field("tags"))
        self.run.append(Item("B", "n", here.path))
        self._flush()
        source.indent("if n:")
        if not tagged:
            source.add("pos = skip_tags(buf, pos - 1)", here)
            source.dedent()
            return
        stop = f"tag_stop{next(self.numbers)}"
        source.add("n, pos = read_uvarint(buf, pos - 1)", here)
        source.indent(f"if n > {_TAGS_MAX}:", here)
        source.add("raise ValueError(f'{n} tagged fields')", here)
        source.dedent()
        source.indent("for _ in range(n):")
        source.add("tag, pos = read_uvarint(buf, pos)", here)
        source.add("n, pos = read_uvarint(buf, pos)", here)
        source.add(f"{stop} = pos + n")
        source.indent(f"if {stop} > end:", here)
        source.add("raise ValueError(f'tag {tag} has {n} bytes, but {end - pos} are left')", here)
        source.dedent()
        for field in tagged:
            inside = Item("", "", path.field(field.name))
            source.indent(f"{'if' if field is tagged[0] else 'elif'} tag == {field.tag}:")
            self.write_value(field, f"{target}.{field.name}", inside.path)
            self._flush()
            source.indent(f"if pos != {stop}:", inside)
            source.add("raise ValueError('the size of the tag does not match its content')", inside)
            source.dedent()
            source.dedent()
        source.add(f"pos = {stop}")
        source.dedent()
        source.dedent()

    def _flush(self) -> None:
        run, self.run = self.run, []
        if not run:
            return
        letters = "".join(item.letter for item in run)
        if letters == "B":
            self.source.add(f"{run[0].expression} = buf[pos]", *run)
            self.source.add("pos += 1")
            return
        targets = ", ".join(item.expression for item in run)
        unpack = self.source.structure(letters, "unpack_from")
        self.source.add(f"{targets}{',' * (len(run) == 1)} = {unpack}(buf, pos)", *run)
        self.source.add(f"pos += {struct.calcsize('>' + letters)}")

    def _class(self, cls: type) -> str:
        name = f"{cls.__name__}_"
        self.source.names[name] = cls
        return name

    def _smallest(self, field: Field) -> int:
        """The minimum size of a value, which limits the count of an array."""
        if field.kind in FIXED:
            return struct.calcsize(">" + FIXED[field.kind])
        if field.kind != "struct":
            if self.is_flexible and field.compact:
                return 1
            return 2 if field.kind == "string" else 4
        if field.is_nullable(self.version):
            return 1
        assert field.struct is not None
        present = [f for f in schema_of(field.struct).fields if f.exists_in(self.version)]
        smallest = sum(self._smallest(f) for f in present if f.tag is None)
        return max(1, smallest + self.is_flexible)


def _skip_tags(buf: bytes, pos: int) -> int:
    """Skip a section of tagged fields that are all unknown."""
    tags, pos = read_uvarint(buf, pos)
    if tags > _TAGS_MAX:
        raise ValueError(f"{tags} tagged fields")
    for _ in range(tags):
        tag, pos = read_uvarint(buf, pos)
        size, pos = read_uvarint(buf, pos)
        pos += size
        if pos > len(buf):
            raise ValueError(f"tag {tag} of {size} bytes ends {pos - len(buf)} bytes after the end")
    return pos


def _explain(
    error: Exception, title: str, items_by_line: dict[int, tuple[Item, ...]]
) -> MalformedMessage:
    """Find the field of the failing line and its position."""
    traceback = error.__traceback__
    assert traceback is not None
    variables = traceback.tb_frame.f_locals
    position, end = variables["pos"], variables["end"]
    items = items_by_line[traceback.tb_lineno]
    if isinstance(error, IndexError | struct.error):
        for item in items:
            if position + item.width > end or item is items[-1]:
                return MalformedMessage(
                    title, item.path.format(variables), position, "the bytes end here"
                )
            position += item.width
    reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
    return MalformedMessage(title, items[0].path.format(variables), position, reason)
