"""Extract one sentence from an error that Spark has wrapped. Pure."""

import re
from typing import Final

from kohort.pipeline.errors import PipelineError

_OURS: Final = re.compile(r"kohort\.(?:[a-z_]+\.)+[A-Z]\w*: (.+)")
"""A Kohort error in the traceback of another process."""

_CAUSE: Final = re.compile(r"^Caused by: (?:[\w.$]+: )?(.+)$", re.MULTILINE)

_WRAPPERS: Final = (
    r"^\[[A-Z_0-9.]+\] ",
    r"^Query \[id = [^\]]*\] terminated with exception: ",
    r"^(?:[a-z]\w*\.)+[A-Z][\w$]*: ",
    r"\s*SQLSTATE: \w+",
)

_COMMAND_LINE: Final = {
    "failOnDataLoss=false continues without them": "--skip-lost continues without them",
    "skipMalformedBatches=true continues without it": "--skip-malformed continues without it",
    "auto.offset.reset is none": "--from is none",
    "set it to earliest or latest, or give startingOffsets": "set it to earliest or latest",
    "; a larger joinTimeoutMs waits longer": "",
    "; a larger fetchTimeoutMs waits longer": "",
}
"""Options of the source and their command line equivalents."""


def explain(error: BaseException) -> str:
    if isinstance(error, PipelineError):
        return _for_command_line(str(error))
    return explain_text(str(error)) or type(error).__name__


def explain_text(text: str) -> str:
    """Kohort's message if there is one, else the reason that Spark or Java gives."""
    ours = _OURS.findall(text)
    if ours:
        return _for_command_line(re.sub(r"'?\. Full traceback below:?.*$", "", ours[-1]).strip())
    causes = _CAUSE.findall(text)
    text = re.sub(r"\AAn error occurred while calling \S+\s*:?\s*", "", text.strip())
    lines = [line for line in text.splitlines() if line.strip()]
    return _unwrap(causes[-1] if causes else " ".join(lines[:1]))


def _unwrap(line: str) -> str:
    before = ""
    while line != before:
        before = line
        for wrapper in _WRAPPERS:
            line = re.sub(wrapper, "", line).strip()
    return line


def _for_command_line(sentence: str) -> str:
    for source, command in _COMMAND_LINE.items():
        sentence = sentence.replace(source, command)
    return sentence
