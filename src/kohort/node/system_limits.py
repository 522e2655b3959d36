"""What the operating system allows and refuses: open files, and reasons of failed starts."""

import os
import resource
import socket


def connections_max() -> int:
    """How many connections the limit of open files allows; the rest is for logs and other files."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return limit - limit // 4


def start_failure(error: OSError | UnicodeError) -> str:
    """The reason without the address, which asyncio adds and the message already has."""
    if isinstance(error, UnicodeError):
        return "invalid host name"
    if isinstance(error, socket.gaierror) or error.errno is None:
        return error.strerror or str(error)
    return os.strerror(error.errno)
