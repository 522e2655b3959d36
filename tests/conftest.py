"""What every test shares: how Hypothesis searches, and how traces are rewritten."""

import os

import pytest
from hypothesis import settings

# No deadline: a slow machine is not a failing test. The blob reproduces a failure elsewhere.
settings.register_profile("default", deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("default"), max_examples=200)
settings.load_profile("ci" if os.environ.get("CI") == "true" else "default")


def pytest_addoption(parser: pytest.Parser) -> None:
    help_ = "write down what traces say now; read the difference, keep only what you understand"
    parser.addoption("--rewrite", action="store_true", help=help_)
