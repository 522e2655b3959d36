"""The names that users import from kohort.testing."""

import sys
from importlib import import_module

import pytest

import kohort.testing


@pytest.mark.parametrize("name", kohort.testing.__all__)
def test_a_public_name_is_that_of_its_module(name: str) -> None:
    found = getattr(kohort.testing, name)

    assert found.__name__ == name
    assert getattr(sys.modules[found.__module__], name) is found


def test_public_names_are_listed() -> None:
    assert dir(kohort.testing) == sorted(kohort.testing.__all__)


def test_an_unknown_name_is_refused() -> None:
    module = import_module("kohort.testing")

    with pytest.raises(AttributeError, match=r"module 'kohort.testing' has no attribute 'Nod'"):
        _ = module.Nod
