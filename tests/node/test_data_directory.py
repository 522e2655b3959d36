"""The permissions of the data directory."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import kohort
from kohort.settings.readers import BadValue


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_new_data_directory_is_private_to_the_owner(tmp_path: Path) -> None:
    with kohort.Node(data=tmp_path / "parent" / "data"):
        pass

    assert mode_of(tmp_path / "parent" / "data") == 0o700
    assert mode_of(tmp_path / "parent") == 0o755


def test_setting_gives_a_new_data_directory_other_permissions(tmp_path: Path) -> None:
    os.umask(0o077)

    with kohort.Node(data=tmp_path / "data", settings={"kohort.data.directory.mode": "0750"}):
        pass

    assert mode_of(tmp_path / "data") == 0o750


@pytest.mark.parametrize("mode", ["", "0600", "700x", "1777", "0800", "-700"])
def test_other_permissions_are_refused(mode: str) -> None:
    with pytest.raises(BadValue, match="not between 0700 and 0777"):
        kohort.Node(settings={"kohort.data.directory.mode": mode})


def test_existing_data_directory_keeps_its_permissions_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    data.mkdir(0o755)

    with caplog.at_level(logging.WARNING), kohort.Node(data=data):
        pass

    (warning,) = [each for each in caplog.messages if each.startswith("data-directory-open")]
    assert f"path={data} mode=0755" in warning
    assert "chmod 0700" in warning
    assert mode_of(data) == 0o755


@pytest.mark.parametrize(
    ("existing", "allowed"), [(0o700, "0700"), (0o750, "0750"), (0o700, "0755")]
)
def test_allowed_permissions_cause_no_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, existing: int, allowed: str
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(existing)

    with (
        caplog.at_level(logging.WARNING),
        kohort.Node(data=data, settings={"kohort.data.directory.mode": allowed}),
    ):
        pass

    assert not [each for each in caplog.messages if each.startswith("data-directory-open")]
