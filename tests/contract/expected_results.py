"""The expected result of a behaviour with one library on one broker.

Markers of a test declare it: `needs` names features that a library may lack, `differs` says what
Kohort does not support. A test that is expected to fail runs too, and must fail with the declared
exception: a feature that starts to work must lose its marker.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from tests.contract.brokers import APACHE
from tests.contract.clients.client_library import ClientLibrary, NotSupported

Colour = Literal["green", "grey", "red"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Green: works. Grey: the library does not support it. Red: the broker does not support it."""

    colour: Colour
    reason: str = ""
    raises: type[Exception] | None = None
    is_there: Callable[[], bool] | None = None
    api_key: int | None = None


GREEN = Claim(colour="green")


def needs(*features: str) -> pytest.MarkDecorator:
    """Libraries without one of these features are expected to fail."""
    return pytest.mark.needs(*features)


def differs(
    reason: str,
    *,
    library: str | None = None,
    raises: type[Exception] = NotSupported,
    api_key: int | None = None,
) -> pytest.MarkDecorator:
    """Kohort does not support it, or not with one library.

    The test must raise this exception; or, where the test would take long, the broker must not
    serve this API key.
    """
    return pytest.mark.differs(reason=reason, library=library, raises=raises, api_key=api_key)


def claim_of(marks: Iterable[pytest.Mark], library: ClientLibrary | None, broker: str) -> Claim:
    marks = list(marks)
    for mark in marks:
        if mark.name == "needs" and library is not None:
            for feature in mark.args:
                if limitation := library.limitations.get(feature):
                    return Claim(
                        colour="grey",
                        reason=limitation.reason,
                        raises=limitation.raises,
                        is_there=limitation.is_there,
                    )
    for mark in marks:
        if mark.name == "differs" and broker != APACHE:
            only = mark.kwargs["library"]
            if only is None or (library is not None and library.name == only):
                given = {key: mark.kwargs[key] for key in ("reason", "raises", "api_key")}
                return Claim(colour="red", **given)
    return GREEN


def find_claim(item: pytest.Function) -> Claim:
    """The expected result of a collected test."""
    params: dict[str, Any] = dict(item.callspec.params)
    return claim_of(item.iter_markers(), params.get("library"), params["cluster"])
