"""The protocol as a page for people, written from the declarations and their docstrings.

`python -m kohort.wire.docs > docs/protocol.md` writes the page anew. Nothing that encodes or
decodes uses this module.
"""

import re
import sys
from collections.abc import Iterable
from importlib import import_module
from itertools import groupby
from textwrap import fill
from types import ModuleType
from typing import Final

from kohort.wire import api, batch_header, consumer_offsets, embedded, header, records
from kohort.wire.compression import Codec
from kohort.wire.schema import Field, schema_of

_OPENING: Final = """\
# The protocol

This page is written by `python -m kohort.wire.docs` from the declarations in `kohort.wire`; it is
not edited by hand. `kohort decode` reads any message it describes.

A message travels as four bytes of length, a header and a body. The header of a request names an
API key and a version, and these two say how everything else is read. In the older versions of an
API a string has two bytes of length before it, bytes and arrays have four, and -1 is null. From
the version in the column *flexible since* on (KIP-482), a length is an unsigned varint and one more
than it says, so that 0 is null; and every struct ends in tagged fields, which a reader may skip."""

_HEADERS_RULE: Final = """\
A request has header version 2 where its version is flexible and 1 where it is not; a response has
1 and 0. ApiVersions always answers with header version 0."""


def protocol_markdown() -> str:
    """The whole page."""
    sections = (
        _OPENING,
        "## APIs",
        _api_table(),
        "## Headers",
        _HEADERS_RULE,
        *_declared(header.RequestHeader, header.ResponseHeader),
        _prose_below_title(header),
        "## The consumer protocol inside JoinGroup and SyncGroup",
        _prose_below_title(embedded),
        *_declared(embedded.Subscription, embedded.TopicPartitions, embedded.Assignment),
        "## Records of `__consumer_offsets`",
        _kind_table(),
        _prose_below_title(consumer_offsets),
        "## Record batches",
        _batches(),
        "## The APIs one by one",
        *_notes(),
    )
    return "\n\n".join(sections) + "\n"


def _api_table() -> str:
    return _table(
        ("key", "API", "versions", "flexible since", "file"),
        (
            (
                str(each.key),
                f"[{each.name}](#{each.key}-{each.name.lower()})",
                _span(each.versions),
                _since(each.flexible_since),
                f"[{file}.py](../src/kohort/wire/api/{file}.py)",
            )
            for each, file in zip(api.all_apis(), api.FILES, strict=True)
        ),
    )


def _notes() -> Iterable[str]:
    for each, file in zip(api.all_apis(), api.FILES, strict=True):
        yield f"### {each.key} {each.name}"
        # The heading has said the docstring's first words already.
        text = _prose(import_module(f"{api.__name__}.{file}")).partition(": ")[2]
        yield text[0].upper() + text[1:]


def _kind_table() -> str:
    kinds = groupby(consumer_offsets.KINDS.items(), key=lambda item: item[1])
    return _table(
        ("key's number", "key", "value", "value's versions", "flexible since"),
        (
            (
                ", ".join(str(number) for number, _ in numbered),
                kind.key.__name__,
                kind.value.__name__,
                _span(schema_of(kind.value).versions),
                _since(schema_of(kind.value).flexible_since),
            )
            for kind, numbered in kinds
        ),
    )


def _batches() -> str:
    codecs = ", ".join(f"{codec.value} {codec.name.lower()}" for codec in Codec)
    facts = f"""
Produce and Fetch carry, and logs keep, batches of magic {batch_header.MAGIC}; no older format is
spoken here. A batch has {batch_header.HEADER_BYTES} bytes of header. The length counts from the
leader epoch on, and the checksum, a CRC-32C, covers everything from the attributes on: a broker
can give a batch its offset and epoch without computing it again. The attributes hold the codec
({codecs}) and these flags: the broker's clock
{batch_header.LOG_APPEND_TIME_FLAG:#04x}, transactional {batch_header.TRANSACTIONAL_FLAG:#04x},
control {batch_header.CONTROL_FLAG:#04x}, delete horizon {batch_header.DELETE_HORIZON_FLAG:#04x}.
A codec compresses the records and never the header. The header, then each record:"""
    return "\n\n".join((fill(facts.strip(), 100), _layout(batch_header), _layout(records)))


def _declared(*classes: type) -> Iterable[str]:
    """A table of each class: its fields, how they travel, and in which versions."""
    for cls in classes:
        schema = schema_of(cls)
        title = f"`{schema.name}`"
        if schema.versions:
            title += f", versions {_span(schema.versions)}"
        yield title + ":"
        yield _table(
            ("field", "type", "versions"),
            ((field.name, _type(field), _lifetime(field)) for field in schema.fields),
        )


def _type(field: Field) -> str:
    name = field.struct.__name__ if field.struct is not None else field.kind
    if field.element is not None:
        name = f"array of {_type(field.element)}"
    return name if field.nullable_since is None else f"{name}, or null"


def _lifetime(field: Field) -> str:
    return f"{field.since}+" if field.until is None else f"{field.since}-{field.until}"


def _span(versions: range) -> str:
    return str(versions[0]) if len(versions) == 1 else f"{versions[0]}-{versions[-1]}"


def _since(version: int | None) -> str:
    return "never" if version is None else str(version)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = (head, ("---",) * len(head), *rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _prose(module: ModuleType) -> str:
    """A module's docstring: its sentences as they are, its indented lines as a block of text."""
    text = re.sub(r"(?:^ .*\n?)+", _fence, module.__doc__ or "", flags=re.MULTILINE)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def _prose_below_title(module: ModuleType) -> str:
    """The same without the first sentence, which the page's heading has said."""
    return _prose(module).partition("\n\n")[2]


def _layout(module: ModuleType) -> str:
    """The field list of a module's docstring: its lines of four spaces that name types."""
    lines = re.findall(r"^    ([a-z].*)$", module.__doc__ or "", flags=re.MULTILINE)
    return "\n".join(("```text", *lines, "```"))


def _fence(lines: re.Match[str]) -> str:
    block = "\n".join(line.removeprefix(" ") for line in lines[0].splitlines())
    return f"\n```text\n{block}\n```\n\n"


if __name__ == "__main__":
    sys.stdout.write(protocol_markdown())
