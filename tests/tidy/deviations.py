"""Lists every known difference between Kohort and Apache Kafka, from comments in the code.

`python -m tests.tidy.deviations` prints docs/reference/not-supported.md.
"""

import re
import sys

from tests.tidy.repository import find_texts

HEAD = """\
# Where Kohort differs from Apache Kafka

This page is generated from comments marked `DEVIATION:` in the code by
`python -m tests.tidy.deviations > docs/reference/not-supported.md`. Each says what differs and why.

Not supported at all: replication and failover, access control and encryption, tiered storage, share
groups and streams groups. Kohort runs on one machine; for more, use the same clients with Apache
Kafka.
"""

_MARK = "DEVIATION:"


def find_deviations(text: str) -> list[str]:
    """The text after each mark, including the following comment lines."""
    found = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        match = re.search(rf"#.*?{_MARK}\s*(.*)", line)
        if match is None:
            continue
        sentence = [match[1]]
        for following in lines[number + 1 :]:
            more = re.fullmatch(r"\s*#\s?(.*)", following)
            if more is None or _MARK in following:
                break
            sentence.append(more[1])
        found.append(" ".join(part.strip() for part in sentence if part.strip()))
    return found


def page() -> str:
    parts = [HEAD]
    for path, text in find_texts():
        if path.startswith("src/") and path.endswith(".py"):
            deviations = find_deviations(text)
            if deviations:
                parts.append(f"## {path.removeprefix('src/')}\n")
                parts += [f"- {sentence}" for sentence in deviations]
                parts.append("")
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
