"""The compiled loop over offset commits: where in a key and a value the parts of each are.

It knows every version of both, and only their plain forms. What it doubts it leaves to the wire's
own careful reader: tags it does not know, lengths that do not fit, versions that do not exist.
"""

from typing import Any, Final

import numpy as np
from numba import njit

(
    GROUP_AT,
    GROUP_SIZE,
    TOPIC_AT,
    TOPIC_SIZE,
    PARTITION,
    OFFSET,
    LEADER_EPOCH,
    METADATA_AT,
    METADATA_SIZE,
    COMMIT_MS,
    STATE,
) = range(11)
"""The rows that describe the commits: a commit is a column, so that each row is an array."""
COMMIT_ROWS: Final = 11

COMMITTED, REMOVED, DOUBTFUL = range(3)
"""The states: an offset, a tombstone, or something for the careful reader."""


@njit(cache=True, nogil=True)
def _number(buf: Any, pos: Any, size: Any) -> Any:
    number = np.int64(np.int8(buf[pos]))
    for index in range(1, size):
        number = (number << 8) | np.int64(buf[pos + index])
    return number


@njit(cache=True, nogil=True)
def _scan_key(buf: Any, pos: Any, end: Any, commits: Any, n: Any) -> Any:
    """Group, topic and partition; whether the key is what an offset commit's must be."""
    if end - pos < 10 or buf[pos] != 0 or buf[pos + 1] > 1:
        return False
    group_size = _number(buf, pos + 2, 2)
    group_at = pos + 4
    if group_size < 0 or group_size > end - group_at - 6:
        return False
    topic_at = group_at + group_size + 2
    topic_size = _number(buf, topic_at - 2, 2)
    if topic_size < 0 or topic_size != end - topic_at - 4:
        return False
    commits[GROUP_AT, n] = group_at
    commits[GROUP_SIZE, n] = group_size
    commits[TOPIC_AT, n] = topic_at
    commits[TOPIC_SIZE, n] = topic_size
    commits[PARTITION, n] = _number(buf, topic_at + topic_size, 4)
    return True


@njit(cache=True, nogil=True)
def _scan_value(buf: Any, pos: Any, end: Any, commits: Any, n: Any) -> Any:
    """Offset, epoch, metadata and time; whether the value is one of the plain ones."""
    if end - pos < 20 or buf[pos] != 0 or buf[pos + 1] > 4:
        return False
    version = buf[pos + 1]
    commits[OFFSET, n] = _number(buf, pos + 2, 8)
    pos += 10
    if version >= 3:
        commits[LEADER_EPOCH, n] = _number(buf, pos, 4)
        pos += 4
    if version == 4:
        size, pos = _compact_size(buf, pos, end)
        tail = end - pos - size - 8
        # Without tags, or with the topic id alone: its number, its size, and the id.
        if size < 0 or tail < 1 or not _ends_plainly(buf, end - tail, tail):
            return False
    else:
        size = _number(buf, pos, 2)
        pos += 2
        if size < 0 or end - pos - size != (16 if version == 1 else 8):
            return False
    commits[METADATA_AT, n] = pos
    commits[METADATA_SIZE, n] = size
    commits[COMMIT_MS, n] = _number(buf, pos + size, 8)
    return True


@njit(cache=True, nogil=True)
def _compact_size(buf: Any, pos: Any, end: Any) -> Any:
    """The length of a compact string, -1 if it is none, and where the string begins."""
    size = np.int64(buf[pos] & 0x7F)
    if buf[pos] < 0x80:
        return size - 1, pos + 1
    if pos + 2 > end or not 0 < buf[pos + 1] < 0x80:
        return np.int64(-1), pos
    return (size | np.int64(buf[pos + 1]) << 7) - 1, pos + 2


@njit(cache=True, nogil=True)
def _ends_plainly(buf: Any, pos: Any, size: Any) -> Any:
    if size == 1:
        return buf[pos] == 0
    return size == 19 and buf[pos] == 1 and buf[pos + 1] == 0 and buf[pos + 2] == 16


@njit(cache=True, nogil=True)
def scan_commits(  # noqa: PLR0917  # what is compiled takes arrays, not values
    keys: Any, key_edges: Any, values: Any, value_edges: Any, is_removed: Any, commits: Any
) -> Any:
    """Describe the commits of so many keys and values; how many of them are doubtful."""
    doubtful = 0
    for n in range(is_removed.shape[0]):
        # What a tombstone does not have.
        commits[OFFSET, n] = commits[COMMIT_MS, n] = 0
        commits[LEADER_EPOCH, n] = -1
        commits[METADATA_AT, n] = commits[METADATA_SIZE, n] = 0
        if not _scan_key(keys, key_edges[n], key_edges[n + 1], commits, n):
            state = DOUBTFUL
        elif is_removed[n]:
            state = REMOVED
        elif _scan_value(values, value_edges[n], value_edges[n + 1], commits, n):
            state = COMMITTED
        else:
            state = DOUBTFUL
        commits[STATE, n] = state
        doubtful += state == DOUBTFUL
    return doubtful


@njit(cache=True, nogil=True)
def copy(buf: Any, at: Any, edges: Any, out: Any) -> None:
    """Put spans of a buffer one behind the other: span n fills out from edge n to the next."""
    for n in range(at.shape[0]):
        start = at[n] - edges[n]
        for index in range(edges[n], edges[n + 1]):
            out[index] = buf[start + index]
