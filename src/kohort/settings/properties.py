"""Java's properties files, in which Kafka's own tools take their options."""

import re
from pathlib import Path

from kohort.settings.readers import BadValue


def read_properties(file: Path | None) -> dict[str, str]:
    """The options in a file; none without a file. Raises BadValue if it cannot be read."""
    if file is None:
        return {}
    try:
        return parse_properties(file.read_text("utf-8"))
    except OSError as error:
        raise BadValue(f"{file} cannot be read: {error.strerror}") from None
    except (UnicodeError, BadValue) as error:
        raise BadValue(f"{file}: {error}") from None


def parse_properties(text: str) -> dict[str, str]:
    """The text of a properties file, by Java's rules for separators, escapes and long lines."""
    found: dict[str, str] = {}
    for line in _logical_lines(text):
        name, content = _split(line)
        found[_unescape(name)] = _unescape(content)
    return found


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    unfinished = ""
    for raw in text.splitlines():
        line = raw.lstrip(" \t\f")
        if not unfinished and (not line or line[0] in "#!"):
            continue
        line = unfinished + line
        is_continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
        unfinished = line[:-1] if is_continued else ""
        if not is_continued:
            lines.append(line)
    return [*lines, unfinished] if unfinished else lines


def _split(line: str) -> tuple[str, str]:
    """At the first separator that is not escaped: an equals sign, a colon or a blank."""
    position = 0
    while position < len(line) and line[position] not in "=: \t\f":
        position += 2 if line[position] == "\\" else 1
    rest = line[position:].lstrip(" \t\f")
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(" \t\f")
    return line[:position], rest


def _unescape(text: str) -> str:
    parts: list[str] = []
    position = 0
    while position < len(text):
        letter = text[position]
        position += 1
        if letter != "\\" or position == len(text):
            parts.append(letter)
            continue
        letter = text[position]
        position += 1
        if letter == "u":
            digits = text[position : position + 4]
            if not re.fullmatch("[0-9a-fA-F]{4}", digits):
                raise BadValue(f"\\u{digits} is not a character of a properties file")
            parts.append(chr(int(digits, 16)))
            position += 4
        else:
            parts.append({"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(letter, letter))
    return "".join(parts)
