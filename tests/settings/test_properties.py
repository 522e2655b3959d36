"""Properties files, as Java reads them."""

from pathlib import Path

import pytest

from kohort.settings.properties import parse_properties, read_properties
from kohort.settings.readers import BadValue


def test_a_properties_file_is_read_as_java_does() -> None:
    text = r"""
        # a comment
        ! another
        client.id = tool
        request.timeout.ms: 5000
        retries 3
        metric.reporters=a,\
            b
        path=c\:\\d\u0041\t.
        empty=
    """

    assert parse_properties(text) == {
        "client.id": "tool",
        "request.timeout.ms": "5000",
        "retries": "3",
        "metric.reporters": "a,b",
        "path": "c:\\dA\t.",
        "empty": "",
    }


def test_a_broken_escape_is_refused() -> None:
    with pytest.raises(BadValue, match="properties file"):
        parse_properties(r"a=\u12")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing, broken = tmp_path / "missing", tmp_path / "broken"
    broken.write_bytes(b"a=\xff")

    assert read_properties(None) == {}
    with pytest.raises(BadValue, match="missing cannot be read: No such file"):
        read_properties(missing)
    with pytest.raises(BadValue, match="broken: "):
        read_properties(broken)
