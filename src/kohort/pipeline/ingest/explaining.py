"""One sentence about what went wrong, out of what Spark wraps around it. Pure."""

import re
from typing import Final

from kohort.pipeline.errors import PipelineError

_OURS: Final = re.compile(r"kohort\.(?:[a-z_]+\.)+[A-Z]\w*: (.+)")
"""An error of ours, as a traceback of another process shows it."""

_CAUSE: Final = re.compile(r"^Caused by: (?:[\w.$]+: )?(.+)$", re.MULTILINE)

_FRAMES: Final = (
    r"^\[[A-Z_0-9.]+\] ",
    r"^Query \[id = [^\]]*\] terminated with exception: ",
    r"^(?:[a-z]\w*\.)+[A-Z][\w$]*: ",
    r"\s*SQLSTATE: \w+",
)

_IN_OUR_WORDS: Final = {
    "failOnDataLoss=false goes on without them": "--skip-lost goes on without them",
    "auto.offset.reset is none": "--from is none",
    "say earliest or latest, or give startingOffsets": "say earliest or latest",
    "; joinTimeoutMs allows for more time": "",
    "; fetchTimeoutMs allows for more time": "",
}
"""Options of the source, as the command line has them."""


def explain(error: BaseException) -> str:
    if isinstance(error, PipelineError):
        return _in_our_words(str(error))
    return explain_text(str(error)) or type(error).__name__


def explain_text(text: str) -> str:
    """Ours if there is one; else what Spark, or Java, gives as the reason."""
    ours = _OURS.findall(text)
    if ours:
        return _in_our_words(re.sub(r"'?\. Full traceback below:?.*$", "", ours[-1]).strip())
    causes = _CAUSE.findall(text)
    text = re.sub(r"\AAn error occurred while calling \S+\s*:?\s*", "", text.strip())
    lines = [line for line in text.splitlines() if line.strip()]
    return _unwrap(causes[-1] if causes else " ".join(lines[:1]))


def _unwrap(line: str) -> str:
    before = ""
    while line != before:
        before = line
        for frame in _FRAMES:
            line = re.sub(frame, "", line).strip()
    return line


def _in_our_words(sentence: str) -> str:
    for theirs, ours in _IN_OUR_WORDS.items():
        sentence = sentence.replace(theirs, ours)
    return sentence
