"""Rules that the formatter, the linter and the type checker do not check.

Each rule is a pure function from the text of a file to its offences, as (line, complaint).
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
COLUMNS_MAX = 100
TEST_NAME_WORDS_MIN = 3

Offences = Iterator[tuple[int, str]]


def long_files(text: str) -> Offences:
    """Split files that are too long to read."""
    lines = len(text.splitlines())
    if lines > FILE_LINES_MAX:
        yield lines, f"{lines} lines; at most {FILE_LINES_MAX}"


def long_functions(text: str) -> Offences:
    """A function fits on one screen."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield node.lineno, f"{node.name} has {lines} lines; at most {FUNCTION_LINES_MAX}"


def long_lines(text: str) -> Offences:
    """Two files fit side by side. URLs cannot be wrapped."""
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > COLUMNS_MAX and "https://" not in line:
            yield number, f"{len(line)} columns; at most {COLUMNS_MAX}"


def leftovers(text: str) -> Offences:
    """Fix it, or open an issue."""
    yield from _matches(text, r"\b(T[O]DO|F[I]XME|X[X]X)\b")


def prints(text: str) -> Offences:
    """Only the command line prints to the terminal."""
    yield from _calls(text, {"print"})


def breakpoints(text: str) -> Offences:
    """A forgotten breakpoint."""
    yield from _calls(text, {"breakpoint", "pdb.set_trace"})


def sleeps(text: str) -> Offences:
    """A test waits for a condition with a deadline; it does not sleep."""
    yield from _calls(text, {"sleep", "time.sleep", "asyncio.sleep"})


def unexplained_ignores(text: str) -> Offences:
    """An ignored type error has a reason."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_ignore = token.type == tokenize.COMMENT and "type: ignore" in token.string
        if is_ignore and not re.search(r"ignore\[.+\]\s*#\s*(?!noqa\b)\w", token.string):
            yield token.start[0], "write: type: ignore[code]  # reason"


def swallowed_exceptions(text: str) -> Offences:
    """Code that catches every exception raises it again or uses it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ExceptHandler) and _catches_everything(node):
            inner = [child for statement in node.body for child in ast.walk(statement)]
            raises = any(isinstance(child, ast.Raise) for child in inner)
            uses = any(isinstance(child, ast.Name) and child.id == node.name for child in inner)
            if not raises and not uses:
                yield node.lineno, "every exception is caught here and dropped"


def missing_docstrings(text: str) -> Offences:
    """A module has a docstring."""
    if ast.get_docstring(ast.parse(text)) is None:
        yield 1, "the module has no docstring"


def empty_files(text: str) -> Offences:
    """A file has content."""
    if not text.strip():
        yield 1, "the file is empty"


def machine_paths(text: str) -> Offences:
    """No paths that exist on one machine only."""
    yield from _matches(text, r"(?<![\w.~-])/(work|root|home|Users)/")


def registry_hosts(text: str) -> Offences:
    """Package registries are configured by the user, not here."""
    hosts = r"pypi[.]org|pythonhosted[.]org|anaconda[.]org|npmjs[.]org|maven[.]org|maven[.]apache"
    yield from _matches(text, hosts)


def short_test_names(text: str) -> Offences:
    """The name of a test is a sentence."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            head, *words = node.name.split("_")
            if head == "test" and len(words) < TEST_NAME_WORDS_MIN:
                yield node.lineno, f"{node.name} is not a sentence"


def _matches(text: str, pattern: str) -> Offences:
    for number, line in enumerate(text.splitlines(), start=1):
        for match in re.finditer(pattern, line):
            yield number, match.group()


def _calls(text: str, names: set[str]) -> Offences:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in names:
            yield node.lineno, ast.unparse(node)


def _catches_everything(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = ast.unparse(handler.type)
    return bool(re.search(r"\b(Base)?Exception\b", caught))
