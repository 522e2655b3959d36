"""Writes the decode function of one message and version: straight-line Python, no interpretation.

Neighbouring fields of constant width, and the length prefix that follows them, are read by one
`struct` call. Arrays become loops in place, so that one message is one function and a failing
line names its field.
"""

import struct
from collections.abc import Callable
from itertools import count
from typing import Any

from kohort.wire.errors import MalformedMessage
from kohort.wire.schema import FIXED, Field, schema_of
from kohort.wire.source import Item, Path, Source
from kohort.wire.varint import read_uvarint

_HEAD = """\
def decode(buf, pos):
    end = len(buf)
    try:"""
_TAIL = """\
        return o0, pos
    except (IndexError, ValueError, struct_error) as error:
        raise explain(error) from None"""


def build_decoder(cls: type, version: int) -> Callable[[bytes, int], tuple[Any, int]]:
    """Make `decode(buf, pos) -> (value, next pos)`; it raises MalformedMessage and nothing else."""
    schema = schema_of(cls)
    title = f"{schema.name} v{version}"
    writer = _Writer(version, is_flexible=schema.is_flexible(version))
    writer.write_struct(cls, "o0", Path())
    source = writer.source

    def explain(error: Exception) -> MalformedMessage:
        return _explain(error, title, source.notes)

    source.names |= {
        "new": object.__new__,
        "read_uvarint": read_uvarint,
        "skip_tags": _skip_tags,
        "struct_error": struct.error,
        "unpack_from": struct.unpack_from,
        "explain": explain,
    }
    return source.compile(f"decode {title}", _HEAD, _TAIL)


class _Writer:
    """Emits the lines that read one struct after another; `run` gathers what one call can read."""

    def __init__(self, version: int, *, is_flexible: bool) -> None:
        self.version = version
        self.is_flexible = is_flexible
        self.source = Source()
        self.run: list[Item] = []
        self.numbers = count(1)

    def write_struct(self, cls: type, target: str, path: Path) -> None:
        add = self.source.add
        self._flush()
        add(f"{target} = new({self._class(cls)})")
        fields = schema_of(cls).fields
        living = [f for f in fields if f.lives_in(self.version)]
        tagged = sorted((f for f in living if f.tag is not None), key=lambda f: f.tag or 0)
        absent = [f for f in fields if f not in living]
        for field in absent + tagged:
            add(f"{target}.{field.name} = {self.source.constant(field.default)}")
        for field in living:
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
        else:  # Kafka is odd here: within a tag, a struct that is null is told by 0 and not by -1.
            self.source.add("n, pos = read_uvarint(buf, pos)", Item("", "", path))
            self.source.indent("if n == 0:")
        self.source.add(f"{target} = None")
        self.source.dedent()
        self.source.indent("else:")
        self.write_struct(field.struct, name, path)
        self.source.add(f"{target} = {name}")
        self.source.dedent()

    def _write_sized(self, field: Field, target: str, path: Path) -> None:
        """Strings, bytes and arrays: a length, perhaps null, then that much content."""
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
            source.add("stop = pos + n")
            source.indent("if not pos <= stop <= end:", here)
            source.add("raise ValueError(f'a length of {n} with {end - pos} bytes left')", here)
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
        source.add("raise ValueError(f'a count of {n} with {end - pos} bytes left')", here)
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
        source.dedent()
        source.add(f"{target} = tuple({items})")

    def _write_tags(self, tagged: list[Field], target: str, path: Path) -> None:
        """Known tags are read, unknown ones skipped: that is how old code meets newer peers."""
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
        source.indent("for _ in range(n):")
        source.add("tag, pos = read_uvarint(buf, pos)", here)
        source.add("n, pos = read_uvarint(buf, pos)", here)
        source.add(f"{stop} = pos + n")
        source.indent(f"if {stop} > end:", here)
        source.add("raise ValueError(f'tag {tag} of {n} bytes with {end - pos} left')", here)
        source.dedent()
        for field in tagged:
            inside = Item("", "", path.field(field.name))
            source.indent(f"{'if' if field is tagged[0] else 'elif'} tag == {field.tag}:")
            self.write_value(field, f"{target}.{field.name}", inside.path)
            self._flush()
            source.indent(f"if pos != {stop}:", inside)
            source.add("raise ValueError('the tag says another size than its content has')", inside)
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
        """The fewest bytes a value can take: what bounds an array's count before any is read."""
        if field.kind in FIXED:
            return struct.calcsize(">" + FIXED[field.kind])
        if field.kind != "struct":
            if self.is_flexible and field.compact:
                return 1
            return 2 if field.kind == "string" else 4
        if field.is_nullable(self.version):
            return 1
        assert field.struct is not None
        living = [f for f in schema_of(field.struct).fields if f.lives_in(self.version)]
        smallest = sum(self._smallest(f) for f in living if f.tag is None)
        return max(1, smallest + self.is_flexible)


def _skip_tags(buf: bytes, pos: int) -> int:
    """Step over a section of tagged fields none of which this version knows."""
    tags, pos = read_uvarint(buf, pos)
    for _ in range(tags):
        tag, pos = read_uvarint(buf, pos)
        size, pos = read_uvarint(buf, pos)
        pos += size
        if pos > len(buf):
            raise ValueError(f"tag {tag} of {size} bytes runs {pos - len(buf)} past the end")
    return pos


def _explain(error: Exception, title: str, notes: dict[int, tuple[Item, ...]]) -> MalformedMessage:
    """From the failing line to the field: which value of a fused run was cut, at which byte."""
    traceback = error.__traceback__
    assert traceback is not None
    variables = traceback.tb_frame.f_locals
    position, end = variables["pos"], variables["end"]
    items = notes[traceback.tb_lineno]
    if isinstance(error, IndexError | struct.error):
        for item in items:
            if position + item.width > end or item is items[-1]:
                return MalformedMessage(
                    title, item.path.show(variables), position, "the bytes end here"
                )
            position += item.width
    reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
    return MalformedMessage(title, items[0].path.show(variables), position, reason)
