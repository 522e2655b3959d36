"""Generates the encode function of one message and version as straight-line Python.

The function appends the parts of a message to a list, which the caller joins. Adjacent values of
constant width are packed by one `struct` call. All parts between two loops or branches are
appended by one statement.

For a large message there is a second form: a generator that yields after every ITEMS_PER_SLICE
array items.
"""

import struct
from collections.abc import Callable, Generator
from itertools import count
from typing import Any

from kohort.wire.codegen import GeneratedSource, Item, Path
from kohort.wire.codegen_decode import ITEMS_PER_SLICE
from kohort.wire.errors import UnencodableMessage
from kohort.wire.schema import FIXED, Field, schema_of
from kohort.wire.varint import UVARINT

_HEAD = """\
def encode(o0, parts):
    try:"""
_SLICED_HEAD = """\
def encode(o0, parts):
    done = 0
    if done:
        yield
    try:"""
_TAIL = """\
    except (AttributeError, TypeError, ValueError, OverflowError, struct_error) as error:
        raise explain(error) from None"""
_NULL = "null is not allowed in this version"


def build_encoder(cls: type, version: int) -> Callable[[Any, list[bytes]], None]:
    """Build `encode(value, parts)`, which raises only UnencodableMessage."""
    return _build(cls, version, _HEAD)


def build_sliced_encoder(
    cls: type, version: int
) -> Callable[[Any, list[bytes]], Generator[None, Any, None]]:
    """Build `encode(value, parts)` as a generator."""
    return _build(cls, version, _SLICED_HEAD)


def _build(cls: type, version: int, head: str) -> Callable[..., Any]:
    schema = schema_of(cls)
    title = f"{schema.name} v{version}"
    writer = _EncoderWriter(
        version, is_flexible=schema.is_flexible(version), is_sliced=head is _SLICED_HEAD
    )
    writer.write_struct(cls, "o0", Path())
    writer.flush()
    source = writer.source
    source.add("pass")

    def explain(error: Exception) -> UnencodableMessage:
        return _explain(error, title, source.items_by_line)

    source.names |= {
        "U": UVARINT,
        "pack": struct.pack,
        "join": b"".join,
        "struct_error": struct.error,
        "explain": explain,
    }
    return source.compile(f"encode {title}", head, _TAIL)


class _EncoderWriter:
    """Emits the lines that encode structs.

    `run` collects values for one pack call. `pending` collects expressions that will be appended to
    the list named by `target`.
    """

    def __init__(self, version: int, *, is_flexible: bool, is_sliced: bool) -> None:
        self.version = version
        self.is_flexible = is_flexible
        self.is_sliced = is_sliced
        self.source = GeneratedSource()
        self.run: list[Item] = []
        self.pending: list[tuple[str, tuple[Item, ...]]] = []
        self.target = "parts"
        self.numbers = count(1)

    def write_struct(self, cls: type, value: str, path: Path) -> None:
        fields = schema_of(cls).fields
        present = [f for f in fields if f.exists_in(self.version)]
        for field in fields:
            if field not in present and not field.ignorable:
                self._reject_unless_default(field, f"{value}.{field.name}", path.field(field.name))
        for field in present:
            if field.tag is None:
                self.write_value(field, f"{value}.{field.name}", path.field(field.name))
        if self.is_flexible:
            tagged = sorted((f for f in present if f.tag is not None), key=lambda f: f.tag or 0)
            self._write_tags(tagged, value, path)

    def write_value(self, field: Field, value: str, path: Path) -> None:
        if field.kind in FIXED:
            self._write_fixed(field, value, path)
        elif field.kind == "struct":
            self._write_nested(field, value, path)
        elif field.kind == "array":
            self._write_array(field, value, path)
        else:
            self._write_sized(field, value, path)

    def _write_fixed(self, field: Field, value: str, path: Path) -> None:
        if field.kind == "uuid":
            here = Item("", value, path)
            self.source.indent(f"if len({value}) != 16:", here)
            self.source.add("raise ValueError('a UUID has 16 bytes')", here)
            self.source.dedent()
        self.run.append(Item(FIXED[field.kind], value, path))

    def _write_sized(self, field: Field, value: str, path: Path) -> None:
        """Strings and bytes. The content is encoded first, because its length comes first."""
        source, here = self.source, Item("", value, path)
        name = f"s{next(self.numbers)}"
        encode = ".encode()" if field.kind == "string" else ""
        is_compact = self.is_flexible and field.compact
        length = f"len({name}) + 1" if is_compact else f"len({name})"
        if field.is_nullable(self.version):
            size = f"n{name[1:]}"
            source.add(f"{name} = {value}", here)
            source.indent(f"if {name} is None:")
            source.add(f"{name} = b''")
            source.add(f"{size} = {0 if is_compact else -1}")
            source.dedent()
            source.indent("else:")
            if encode:
                source.add(f"{name} = {name}{encode}", here)
            source.add(f"{size} = {length}", here)
            source.dedent()
            length = size
        else:
            source.add(f"{name} = {value}{encode}", here)
        letter = "h" if field.kind == "string" else "i"
        self._write_length(length, letter, path, is_compact=is_compact)
        self._write_part(name, Item("", name, path))

    def _write_length(self, length: str, letter: str, path: Path, *, is_compact: bool) -> None:
        if is_compact:
            self._write_part(f"U[{length}]", Item("", length, path))
        else:
            self.run.append(Item(letter, length, path))

    def _write_nested(self, field: Field, value: str, path: Path) -> None:
        assert field.struct is not None
        name = f"o{next(self.numbers)}"
        self.source.add(f"{name} = {value}", Item("", value, path))
        if not field.is_nullable(self.version):
            self.write_struct(field.struct, name, path)
            return
        self.flush()
        self.source.indent(f"if {name} is None:")
        null = r"b'\xff'" if field.tag is None else r"b'\x00'"
        self.source.add(f"{self.target}.append({null})")
        self.source.dedent()
        self.source.indent("else:")
        self.run.append(Item("b", "1", path))
        self.write_struct(field.struct, name, path)
        self.flush()
        self.source.dedent()

    def _write_array(self, field: Field, value: str, path: Path) -> None:
        source, here = self.source, Item("", value, path)
        is_compact = self.is_flexible and field.compact
        name = f"a{next(self.numbers)}"
        source.add(f"{name} = {value}", here)
        length = f"len({name}) + 1" if is_compact else f"len({name})"
        if field.is_nullable(self.version):
            self.flush()
            source.indent(f"if {name} is None:")
            null = "b'\\x00'" if is_compact else r"b'\xff\xff\xff\xff'"
            source.add(f"{self.target}.append({null})")
            source.dedent()
            source.indent("else:")
        self._write_length(length, "i", path, is_compact=is_compact)
        self._write_items(field, name, path, here)
        if field.is_nullable(self.version):
            self.flush()
            source.dedent()

    def _write_items(self, field: Field, name: str, path: Path, here: Item) -> None:
        element = field.element
        assert element is not None
        if element.kind in FIXED and element.kind != "uuid":
            letter = FIXED[element.kind]
            self._write_part(f"pack(f'>{{len({name})}}{letter}', *{name})", here)
            return
        self.flush()
        one = f"o{next(self.numbers)}"
        inside = path.items(name, one)
        self.source.indent(f"for {one} in {name}:", here)
        if element.kind == "struct":
            assert element.struct is not None
            self.write_struct(element.struct, one, inside)
        else:
            self.write_value(element, one, inside)
        self.flush()
        if self.is_sliced:
            self.source.add("done += 1")
            self.source.indent(f"if not done % {ITEMS_PER_SLICE}:")
            self.source.add("yield")
            self.source.dedent()
        self.source.dedent()

    def _write_tags(self, tagged: list[Field], value: str, path: Path) -> None:
        if not tagged:
            self.run.append(Item("B", "0", path.field("tags")))
            return
        self.flush()
        tags, outer = f"t{next(self.numbers)}", self.target
        self.source.add(f"{tags} = []")
        for field in tagged:
            self._write_tag(field, f"{value}.{field.name}", path.field(field.name), tags)
        self.target = outer
        self.source.add(f"{outer}.append(U[len({tags})])")
        self.source.indent(f"for number, content in {tags}:")
        self.source.add(f"{outer} += (U[number], U[len(content)], content)")
        self.source.dedent()

    def _write_tag(self, field: Field, value: str, path: Path, tags: str) -> None:
        """A tagged field is encoded only if it differs from its default."""
        here = Item("", value, path)
        self.source.indent(f"if {self._differs(field, value)}:", here)
        self.target = f"c{next(self.numbers)}"
        self.source.add(f"{self.target} = []")
        self.write_value(field, value, path)
        self.flush()
        self.source.add(f"{tags}.append(({field.tag}, join({self.target})))", here)
        self.source.dedent()

    def _reject_unless_default(self, field: Field, value: str, path: Path) -> None:
        here = Item("", value, path)
        self.source.indent(f"if {self._differs(field, value)}:", here)
        self.source.add(
            f"raise ValueError('version {self.version} does not have this field')", here
        )
        self.source.dedent()

    def _differs(self, field: Field, value: str) -> str:
        """An expression that is true if a value differs from the default of its field."""
        if field.default is None:
            return f"{value} is not None"
        default = self.source.constant(field.default)
        if field.kind == "struct":  # usually identical, and comparing structs is slow
            return f"{value} is not {default} and {value} != {default}"
        return f"{value} != {default}"

    def _write_part(self, expression: str, item: Item) -> None:
        self._pack_run()
        self.pending.append((expression, (item,)))

    def _pack_run(self) -> None:
        run, self.run = tuple(self.run), []
        if not run:
            return
        if all(item.expression.isdigit() for item in run):
            values = struct.pack(
                ">" + "".join(i.letter for i in run), *(int(i.expression) for i in run)
            )
            self.pending.append((repr(values), run))
            return
        pack = self.source.structure("".join(item.letter for item in run), "pack")
        self.pending.append((f"{pack}({', '.join(item.expression for item in run)})", run))

    def flush(self) -> None:
        self._pack_run()
        pending, self.pending = self.pending, []
        items = tuple(item for _, group in pending for item in group)
        if len(pending) == 1:
            self.source.add(f"{self.target}.append({pending[0][0]})", *items)
        elif pending:
            expressions = ", ".join(expression for expression, _ in pending)
            self.source.add(f"{self.target} += ({expressions})", *items)


def _explain(
    error: Exception, title: str, items_by_line: dict[int, tuple[Item, ...]]
) -> UnencodableMessage:
    """Find the field of the failing line: the first value that cannot be encoded."""
    traceback = error.__traceback__
    assert traceback is not None
    variables = {"__builtins__": {"len": len}, **traceback.tb_frame.f_locals}
    items = items_by_line[traceback.tb_lineno]
    for item in items:
        owner, dot, _ = item.expression.partition(".")
        if dot and variables[owner] is None:
            return UnencodableMessage(title, item.path.owner().format(variables), _NULL)
        reason = _find_reason(item.letter, _evaluate(item.expression, variables))
        if reason is not None:
            return UnencodableMessage(title, item.path.format(variables), reason)
    return UnencodableMessage(title, items[0].path.format(variables), str(error))


def _evaluate(expression: str, variables: dict[str, Any]) -> object:
    """Evaluate a generated expression again. The length of None counts as None."""
    try:
        return eval(expression, dict(variables))  # noqa: S307  # generated from the declarations
    except TypeError:
        return None


def _find_reason(letter: str, value: object) -> str | None:
    if value is None:
        return _NULL
    if not letter:
        return None
    try:
        struct.pack(">" + letter, value)
    except struct.error:
        return f"{value!r} does not fit"
    return None
