"""Lists every place where Kohort knowingly differs from Apache Kafka, from the code itself.

`python -m tests.tidy.deviations` prints docs/not-supported.md.
"""

import re
import sys

from tests.tidy.repository import find_texts

HEAD = """\
# Where Kohort differs from Apache Kafka

This page is made from the comments marked `DEVIATION:` in the code;
`python -m tests.tidy.deviations > docs/not-supported.md` renews it. Each says what differs and why.

Not here at all: replication and failover, access control and encryption, tiered storage, share and
streams groups. One machine is the scope; beyond it, point the same clients at Apache Kafka.
"""

_MARK = "DEVIATION:"


def find_deviations(text: str) -> list[str]:
    """The sentences behind each mark: its own line, and the comment lines that go on from it."""
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
