"""Rules about the names of modules and classes, and the words of all texts.

Each rule is a pure function from paths and texts to offences, one line each.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath

ING_WORDS_ALLOWED = {
    "decoding",
    "encoding",
    "fencing",
    "finding",
    "logging",
    "routing",
    "string",
    "tuning",
}
"""Nouns, and the usual names of such modules."""

BASENAMES_ALLOWED = {"__init__", "errors", "options"}

BASENAMES_EXEMPT = (
    "src/kohort/cli/",
    "src/kohort/console/pages/",
    "src/kohort/node/handlers/",
    "src/kohort/wire/api/",
)
"""One file for each command, page and API key, named after it."""

BASENAME_USES_MAX = 2

MESSAGE_CLASSES = "src/kohort/wire/api/"
"""Kafka gives these classes their names, and repeats some."""

BANNED_WORDS = (
    r"somebody",
    r"nobody",
    r"anybody",
    r"everybody",
    r"who(m)?ever",
    r"so many",
    r"befall\w*",
    r"befell",
    r"culprits?",
    r"wish(es|ed)?",
    r"diar(y|ies)",
    r"parcels?",
    r"errands?",
    r"troupes?",
    r"anew",
    r"mend(s|ed|ing)?",
    r"told again",
    r"tells? again",
    r"slowest hundredth",
    r"be content",
    r"for machines",
    r"hearsay",
    r"keepers?",
    r"roster",
    r"turmoil",
    r"wherefrom",
    r"desks?",
    r"promised members?",
    r"is told",
    r"word by word",
    r"in its turn",
    r"each for itself",
    r"of its own accord",
)
"""Words of a literary voice, where plain technical English has a term."""

_BANNED = re.compile(
    # Also within names; and a phrase may continue on the next line of a comment.
    r"(?<![a-z])("
    + "|".join(word.replace(" ", r"[\s_-]+(?:#\s*)?") for word in BANNED_WORDS)
    + r")(?![a-z])",
    re.IGNORECASE,
)


def gerund_modules(paths: Iterable[str]) -> Iterator[str]:
    """A module is named after a thing: `offset_reset.py`, not `resetting.py`."""
    for path in paths:
        stem = PurePosixPath(path).stem
        last = stem.rpartition("_")[2]
        if last.endswith("ing") and last not in ING_WORDS_ALLOWED and not stem.startswith("test_"):
            yield f"{path}: name it after the thing it contains"


def repeated_basenames(paths: Iterable[str]) -> Iterator[str]:
    """A file name identifies a file in a traceback: at most two modules share one."""
    found = defaultdict(list)
    for path in paths:
        stem = PurePosixPath(path).stem
        if stem not in BASENAMES_ALLOWED and not path.startswith(BASENAMES_EXEMPT):
            found[stem].append(path)
    for stem, users in sorted(found.items()):
        if len(users) > BASENAME_USES_MAX:
            yield f"{stem}.py: {', '.join(sorted(users))}"


def repeated_classes(texts: Mapping[str, str]) -> Iterator[str]:
    """A class name has one meaning in the whole tree; the messages of the protocol aside."""
    found = defaultdict(list)
    for path, text in texts.items():
        if not path.startswith(MESSAGE_CLASSES):
            for node in ast.parse(text).body:
                if isinstance(node, ast.ClassDef):
                    found[node.name].append(path)
    for name, users in sorted(found.items()):
        if len(users) > 1:
            yield f"{name}: {', '.join(sorted(users))}"


def banned_words(text: str) -> Iterator[tuple[int, str]]:
    """Name the subject, and use the term that a search engine knows."""
    for match in _BANNED.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, f"do not write {match.group()!r}"
