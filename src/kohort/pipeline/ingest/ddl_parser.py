"""Parse a schema in Spark's DDL, as in `id BIGINT NOT NULL, tags ARRAY<STRING>`, without a JVM.

PySpark parses DDL only in a running Spark. This parser finds a mistake before Spark starts. A test
compares it with Spark's own parser.
"""

import re
from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CalendarIntervalType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    VarcharType,
    VariantType,
)

from kohort.types import value

_SIMPLE: Final[Mapping[str, type[DataType]]] = {
    "BIGINT": LongType,
    "BINARY": BinaryType,
    "BOOLEAN": BooleanType,
    "BYTE": ByteType,
    "DATE": DateType,
    "DOUBLE": DoubleType,
    "FLOAT": FloatType,
    "INT": IntegerType,
    "INTEGER": IntegerType,
    "LONG": LongType,
    "REAL": FloatType,
    "SHORT": ShortType,
    "SMALLINT": ShortType,
    "TIME": TimeType,
    "TIMESTAMP": TimestampType,
    "TIMESTAMP_LTZ": TimestampType,
    "TIMESTAMP_NTZ": TimestampNTZType,
    "TINYINT": ByteType,
    "VARIANT": VariantType,
    "VOID": NullType,
}

_DECIMALS: Final = ("DECIMAL", "DEC", "NUMERIC")
_CHARS: Final = ("CHAR", "CHARACTER", "VARCHAR")

_AFTER_TYPE: Final = ("NOT", "COMMENT")

_PRECISION_MAX: Final = 38
_DECIMAL_DEFAULT: Final = (10, 0)

_TOKEN: Final = re.compile(
    r"(?P<space>(?:\s|--[^\n]*|/\*.*?\*/)+)"
    r"|(?P<quoted>`(?:[^`]|``)+`)"
    r"|(?P<string>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r"|(?P<word>[A-Za-z0-9_]+)"
    r"|(?P<mark>[<>(),:])",
    re.DOTALL,
)


class BadDdl(ValueError):
    """A text that is not valid DDL; the message has line, column and reason."""


@value
class _Token:
    kind: str
    text: str
    start: int


_END: Final = "end of input"


def parse_ddl(text: str) -> DataType:
    """A StructType for a list of columns; another type if the text is a single type."""
    return _DdlParser(text).parse()


class _DdlParser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._tokenize()
        self._at = 0

    def _tokenize(self) -> list[_Token]:
        tokens = []
        at = 0
        while at < len(self._text):
            found = _TOKEN.match(self._text, at)
            if found is None:
                raise self._error(
                    at, f"unexpected {self._text[at]!r}; quote special names with backticks"
                )
            assert found.lastgroup is not None
            if found.lastgroup != "space":
                tokens.append(_Token(kind=found.lastgroup, text=found[0], start=at))
            at = found.end()
        return [*tokens, _Token(kind="end", text=_END, start=len(self._text))]

    def parse(self) -> DataType:
        if self._next.kind == "end":
            return StructType([])
        is_type = self._next.kind == "word" and self._tokens[1].text in ("<", "(", _END)
        parsed = self._parse_type() if is_type else StructType(self._parse_columns())
        if self._next.kind != "end":
            raise self._unexpected()
        return parsed

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _parse_columns(self) -> list[StructField]:
        columns = [self._parse_column()]
        while self._skip(","):
            columns.append(self._parse_column())
        return columns

    def _parse_column(self) -> StructField:
        token = self._next
        if token.kind == "quoted":
            name = token.text[1:-1].replace("``", "`")
        elif token.kind == "word" and not token.text.isdecimal():
            name = token.text
        else:
            raise self._unexpected("a column name")
        self._at += 1
        self._skip(":")
        kind = self._parse_type()
        is_nullable = not self._skip("NOT")
        if not is_nullable:
            self._expect("NULL")
        metadata = {}
        if self._skip("COMMENT"):
            if self._next.kind != "string":
                raise self._unexpected("a comment in quotes")
            metadata["comment"] = self._next.text[1:-1]
            self._at += 1
        return StructField(name, kind, is_nullable, metadata)

    def _parse_type(self) -> DataType:
        token = self._next
        if token.kind != "word":
            raise self._unexpected("a type")
        self._at += 1
        name = token.text.upper()
        match name:
            case "ARRAY":
                self._expect("<")
                element = self._parse_type()
                self._expect(">")
                return ArrayType(element)
            case "MAP":
                self._expect("<")
                key = self._parse_type()
                self._expect(",")
                content = self._parse_type()
                self._expect(">")
                return MapType(key, content)
            case "STRUCT":
                self._expect("<")
                columns = [] if self._next.text == ">" else self._parse_columns()
                self._expect(">")
                return StructType(columns)
            case _:
                return self._parse_simple(token, name)

    def _parse_simple(self, token: _Token, name: str) -> DataType:
        numbers = self._parse_numbers()
        match name, numbers:
            case "STRING", ():
                return StringType(self._take_word()) if self._skip("COLLATE") else StringType()
            case "INTERVAL", ():
                # All interval types are refused later, with an error that names the column.
                while self._next.kind == "word" and self._next.text.upper() not in _AFTER_TYPE:
                    self._at += 1
                return CalendarIntervalType()
            case "TIME", (_,):
                return TimeType()
            case "TIMESTAMP", () if self._skip("WITHOUT"):
                self._expect("TIME")
                self._expect("ZONE")
                return TimestampNTZType()
            case _:
                return self._make_type(token, name, numbers)

    def _make_type(self, token: _Token, name: str, numbers: tuple[int, ...]) -> DataType:
        if name in _DECIMALS and len(numbers) <= len(_DECIMAL_DEFAULT):
            precision, scale = (*numbers, *_DECIMAL_DEFAULT[len(numbers) :])
            if not scale <= precision <= _PRECISION_MAX:
                raise self._error(
                    token.start,
                    f"DECIMAL({precision}, {scale}) needs a precision of at most "
                    f"{_PRECISION_MAX}, and a scale of at most the precision",
                )
            return DecimalType(precision, scale)
        if name in _CHARS and len(numbers) == 1:
            return (VarcharType if name == "VARCHAR" else CharType)(numbers[0])
        if name in _SIMPLE and not numbers:
            return _SIMPLE[name]()
        shown = token.text + (f"({', '.join(map(str, numbers))})" if numbers else "")
        raise self._error(token.start, f"unknown type {shown}")

    def _parse_numbers(self) -> tuple[int, ...]:
        if not self._skip("("):
            return ()
        numbers = [self._take_number()]
        while self._skip(","):
            numbers.append(self._take_number())
        self._expect(")")
        return tuple(numbers)

    def _take_number(self) -> int:
        text = self._take_word()
        if not text.isdecimal():
            self._at -= 1
            raise self._unexpected("a number")
        return int(text)

    def _take_word(self) -> str:
        if self._next.kind != "word":
            raise self._unexpected()
        self._at += 1
        return self._tokens[self._at - 1].text

    def _skip(self, text: str) -> bool:
        """Skip a keyword or a mark, if it comes next."""
        is_next = self._next.kind in ("word", "mark") and self._next.text.upper() == text
        self._at += is_next
        return is_next

    def _expect(self, text: str) -> None:
        if not self._skip(text):
            raise self._unexpected(text)

    def _unexpected(self, wanted: str = "") -> BadDdl:
        found = self._next
        shown = found.text if found.kind == "end" else repr(found.text)
        return self._error(
            found.start, f"{wanted} expected, found {shown}" if wanted else f"unexpected {shown}"
        )

    def _error(self, at: int, reason: str) -> BadDdl:
        line = self._text.count("\n", 0, at) + 1
        column = at - (self._text.rfind("\n", 0, at) + 1) + 1
        return BadDdl(f"line {line}, column {column}: {reason}")
