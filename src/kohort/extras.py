"""Names the pip extra that provides a missing optional dependency.

`pip install kohort` installs what the node and the consumer need. Everything else is an extra. A
failed import of one of its packages becomes one sentence that says what to install.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

EXTRAS: Final[Mapping[str, str]] = {
    "typer": "cli",
    "rich": "cli",
    "confluent_kafka": "cli",
    "prometheus_client": "cli",
    "starlette": "console",
    "jinja2": "console",
    "uvicorn": "console",
    "pyspark": "spark",
    "pandas": "spark",
    "pyarrow": "spark",
    "numba": "spark",
    "numpy": "spark",
}
"""Extra by top-level package."""


class MissingExtra(ImportError):
    """A package of an extra is not installed. The message names the extra."""


def missing_extra(error: ImportError, user: str) -> MissingExtra | None:
    """Return the error to show instead; None if `error` is about a package of no extra.

    `user` is the command or the class that needs the package, for example "kohort console".
    """
    if isinstance(error, MissingExtra):
        return error
    extra = EXTRAS.get((error.name or "").partition(".")[0])
    if extra is None:
        return None
    text = f"{user} needs the extra \"{extra}\": pip install 'kohort[{extra}]'"
    return MissingExtra(text, name=error.name)


@contextmanager
def require_extra(user: str) -> Iterator[None]:
    """Raise MissingExtra if the block cannot import a package of an extra."""
    try:
        yield
    except ImportError as error:
        missing = missing_extra(error, user)
        if missing is None:
            raise
        raise missing from error
