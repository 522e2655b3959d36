"""The options of a forensics run."""

import pytest

from kohort.pipeline.forensics.options import (
    KAFKA_REFUSED,
    BadForensicsOptions,
    ForensicsOptions,
    check,
)
from kohort.pipeline.ingest.options import read_consumer_options
from kohort.settings.readers import BadValue


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (ForensicsOptions(target="d"), "use either --bootstrap"),
        (ForensicsOptions(target="d", log="l", bootstrap_servers="h:1"), "use either --bootstrap"),
        (
            ForensicsOptions(target="d", bootstrap_servers="h:1", ends="f"),
            "--ends can only be used with --from-log",
        ),
        (ForensicsOptions(target="d", log="l", is_continuous=True), "does not grow"),
        (ForensicsOptions(target="", log="l"), "--to is empty"),
        (ForensicsOptions(target="d", log="l", groups=("a", "")), "--group is empty"),
    ],
)
def test_contradictory_options_are_refused(options: ForensicsOptions, reason: str) -> None:
    with pytest.raises(BadForensicsOptions, match=reason):
        check(options)


@pytest.mark.parametrize(
    ("argument", "reason"),
    [("group.id=mine", "--own-group"), ("auto.offset.reset=latest", "from the beginning")],
)
def test_reserved_consumer_options_are_refused(argument: str, reason: str) -> None:
    with pytest.raises(BadValue, match=reason):
        read_consumer_options([argument], KAFKA_REFUSED)
