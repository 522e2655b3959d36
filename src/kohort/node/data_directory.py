"""Creates the data directory so that only its owner can read it."""

import contextlib
import stat
from pathlib import Path

from kohort.node import log_events


def prepare_data_directory(path: Path, mode: int) -> None:
    """Create a missing data directory with this mode. An existing one keeps its mode.

    Opening the catalog afterwards reports a directory that cannot be created or used.
    """
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            _warn_if_readable(path, mode)
        else:
            # Not restricted by the umask, because the mode was asked for.
            path.chmod(mode)


def _warn_if_readable(path: Path, mode: int) -> None:
    """Records, keys and committed offsets are readable by all who may enter the directory."""
    given = stat.S_IMODE(path.stat().st_mode)
    if given & 0o077 & ~mode:
        log_events.warning(
            "data-directory-open",
            path=path,
            mode=f"{given:04o}",
            warning="other users of this machine may read the records; to prevent it run chmod"
            f" {mode:04o} on the directory, or allow it with kohort.data.directory.mode",
        )
