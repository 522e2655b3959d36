"""What the formatter, the linter and the type checker do not say about our files.

Each rule is a pure function from a file's text to its offences, as (line, complaint).
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
    """A file that cannot be held in mind is two files."""
    lines = len(text.splitlines())
    if lines > FILE_LINES_MAX:
        yield lines, f"{lines} lines; at most {FILE_LINES_MAX}"


def long_functions(text: str) -> Offences:
    """A function is a screen."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield node.lineno, f"{node.name} has {lines} lines; at most {FUNCTION_LINES_MAX}"


def long_lines(text: str) -> Offences:
    """Two files fit side by side. An address cannot be folded."""
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > COLUMNS_MAX and "https://" not in line:
            yield number, f"{len(line)} columns; at most {COLUMNS_MAX}"


def leftovers(text: str) -> Offences:
    """A reminder nobody is reminded by. Do it, or drop it."""
    yield from _matches(text, r"\b(T[O]DO|F[I]XME|X[X]X)\b")


def prints(text: str) -> Offences:
    """Only the command line talks to a terminal."""
    yield from _calls(text, {"print"})


def breakpoints(text: str) -> Offences:
    """A debugging session that was never closed."""
    yield from _calls(text, {"breakpoint", "pdb.set_trace"})


def sleeps(text: str) -> Offences:
    """A test waits for a condition with a deadline, never for the clock."""
    yield from _calls(text, {"sleep", "time.sleep", "asyncio.sleep"})


def unexplained_ignores(text: str) -> Offences:
    """An ignored type error is followed by the reason why it is none."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_ignore = token.type == tokenize.COMMENT and "type: ignore" in token.string
        if is_ignore and not re.search(r"ignore\[.+\]\s*#\s*(?!noqa\b)\w", token.string):
            yield token.start[0], "write: type: ignore[code]  # reason"


def swallowed_exceptions(text: str) -> Offences:
    """Whoever catches everything raises it again, or does something with it."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ExceptHandler) and _catches_everything(node):
            inner = [child for statement in node.body for child in ast.walk(statement)]
            raises = any(isinstance(child, ast.Raise) for child in inner)
            uses = any(isinstance(child, ast.Name) and child.id == node.name for child in inner)
            if not raises and not uses:
                yield node.lineno, "every exception is caught here, and lost"


def missing_docstrings(text: str) -> Offences:
    """A module opens by saying what it is for and what it never does."""
    if ast.get_docstring(ast.parse(text)) is None:
        yield 1, "the module has no docstring"


def empty_files(text: str) -> Offences:
    """A file without content is a question."""
    if not text.strip():
        yield 1, "the file is empty"


def machine_paths(text: str) -> Offences:
    """A path that exists on one machine only."""
    yield from _matches(text, r"(?<![\w.~-])/(work|root|home|Users)/")


def registry_hosts(text: str) -> Offences:
    """Where packages come from is the business of whoever installs them."""
    hosts = r"pypi[.]org|pythonhosted[.]org|anaconda[.]org|npmjs[.]org|maven[.]org|maven[.]apache"
    yield from _matches(text, hosts)


def short_test_names(text: str) -> Offences:
    """A test is named by the sentence that it proves."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            head, *words = node.name.split("_")
            if head == "test" and len(words) < TEST_NAME_WORDS_MIN:
                yield node.lineno, f"{node.name} is no sentence"


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
