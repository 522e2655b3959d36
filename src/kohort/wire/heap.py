"""Memory of one large message, kept for the next one.

The C library gives large blocks back to the system when they are freed, and the system hands them
out again page by page, each cleared: for a process that moves messages of megabytes, this costs
more than the messages. Only a process that is Kohort's alone should be told so, never somebody
else's that embeds us.
"""

import ctypes
from typing import Final

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
"""Names and numbers of the GNU C library."""

_KEPT_BYTES_MAX: Final = 64 * 1024 * 1024
"""Freed memory beyond this is still given back."""
_BLOCK_BYTES_MAX: Final = 32 * 1024 * 1024
"""The most that the library takes; larger blocks are given back as ever."""


def keep_freed_memory() -> bool:
    """Whether this process will; other C libraries have ways of their own, and are left to them."""
    try:
        tell = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(
        tell(_M_MMAP_THRESHOLD, _BLOCK_BYTES_MAX) and tell(_M_TRIM_THRESHOLD, _KEPT_BYTES_MAX)
    )
