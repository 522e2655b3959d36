"""With malloc tuning, large messages cause no page faults after the first one."""

import platform
import subprocess
import sys

import pytest

_SCRIPT = """
import resource
from kohort.wire.malloc_tuning import keep_freed_memory

def move():
    received = bytes(4_000_000)
    answer = b"".join((b"header", received))
    return len(answer)

def faults(times):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        move()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults(10)
usual = faults(50)
assert keep_freed_memory()
faults(10)
print(usual, faults(50))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
def test_memory_of_large_messages_is_reused() -> None:
    finished = subprocess.run(
        [sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True
    )

    usual, kept = (int(word) for word in finished.stdout.split())

    assert kept < usual / 10
