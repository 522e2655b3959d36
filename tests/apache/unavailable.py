"""Skips tests if Java or the jars of Apache Kafka are unavailable; in CI they fail instead."""

import os
from typing import NoReturn

import pytest


class Unavailable(Exception):
    """Java or the jars are missing. The message says why, and what to install."""


def skip(reason: Unavailable) -> NoReturn:
    """Skip the test. With CI=true it fails, so that missing coverage is noticed."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}", pytrace=False)
    pytest.skip(f"{reason}")
