"""What is claimed about a behaviour with one library on one broker, and proven by its test.

A claim stands in the marks of a test: `needs` names what a library may lack, `differs` says what
Kohort does not do as Apache Kafka does. A test of a cell that is claimed to be missing runs all the
same, and must fail as foreseen: what starts to work must lose its mark.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from tests.contract.brokers import APACHE
from tests.contract.clients.library import Lacking, Library

Colour = Literal["green", "grey", "red"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Green works. Grey is for lack of it in the library, red for lack of it in the broker."""

    colour: Colour
    reason: str = ""
    raises: type[Exception] | None = None
    is_there: Callable[[], bool] | None = None
    api_key: int | None = None


GREEN = Claim(colour="green")


def needs(*features: str) -> pytest.MarkDecorator:
    """Libraries that lack one of these cannot show the behaviour."""
    return pytest.mark.needs(*features)


def differs(
    reason: str,
    *,
    library: str | None = None,
    raises: type[Exception] = Lacking,
    api_key: int | None = None,
) -> pytest.MarkDecorator:
    """Kohort does not do it, or not with one library.

    The test must raise this; or, where it would take long to find out, the request of this key must
    not be served.
    """
    return pytest.mark.differs(reason=reason, library=library, raises=raises, api_key=api_key)


def claim_of(marks: Iterable[pytest.Mark], library: Library | None, broker: str) -> Claim:
    marks = list(marks)
    for mark in marks:
        if mark.name == "needs" and library is not None:
            for feature in mark.args:
                if lack := library.lacks.get(feature):
                    return Claim(
                        colour="grey",
                        reason=lack.reason,
                        raises=lack.raises,
                        is_there=lack.is_there,
                    )
    for mark in marks:
        if mark.name == "differs" and broker != APACHE:
            only = mark.kwargs["library"]
            if only is None or (library is not None and library.name == only):
                given = {key: mark.kwargs[key] for key in ("reason", "raises", "api_key")}
                return Claim(colour="red", **given)
    return GREEN


def find_claim(item: pytest.Function) -> Claim:
    """What is claimed about a test that was collected."""
    params: dict[str, Any] = dict(item.callspec.params)
    return claim_of(item.iter_markers(), params.get("library"), params["cluster"])
