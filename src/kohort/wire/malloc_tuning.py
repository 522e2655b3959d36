"""Tunes malloc to keep the freed memory of large messages for the next message.

The GNU C library returns large freed blocks to the system. The system clears each page before it
provides it again, which costs more than handling a message of some megabytes. Call this only in a
process that belongs to Kohort, never in one that embeds it.
"""

import ctypes
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
"""Parameter numbers of mallopt in the GNU C library."""

_KEPT_BYTES_MAX: Final = 64 * 1024 * 1024
"""Freed memory above this limit is still returned to the system."""
_BLOCK_BYTES_MAX: Final = 32 * 1024 * 1024
"""The maximum that the library accepts. Larger blocks are still returned to the system."""


def keep_freed_memory() -> bool:
    """Returns whether it took effect. Other C libraries are not changed."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(
        mallopt(_M_MMAP_THRESHOLD, _BLOCK_BYTES_MAX) and mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES_MAX)
    )
