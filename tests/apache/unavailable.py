"""What to do where something of Apache's cannot be had: skip, but never where it must be there."""

import os
from typing import NoReturn

import pytest


class Unavailable(Exception):
    """Java or the jars cannot be had here. The message says why, and what would help."""


def skip(reason: Unavailable) -> NoReturn:
    """Skip the test; where CI is set a missing Kafka is a failure, or it would never be missed."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}", pytrace=False)
    pytest.skip(f"{reason}")
