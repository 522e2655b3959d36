"""The compiled loop over offset commits: it finds the positions of the fields in keys and values.

It supports the common layouts of every version. It marks all others as doubtful, for kohort.wire:
unknown tags, wrong lengths and unknown versions.
"""

from typing import Any, Final

import numpy as np
from numba import njit

from kohort.pipeline.kernel import read_int

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
"""The rows of the result: each commit is a column, so that each row is an array."""
COMMIT_ROWS: Final = 11

COMMITTED, REMOVED, DOUBTFUL = range(3)
"""The states: an offset, a tombstone, or a record for kohort.wire."""


@njit(cache=True, nogil=True)
def _scan_key(buf: Any, pos: Any, end: Any, commits: Any, n: Any) -> Any:
    """Find group, topic and partition; return whether the key has the expected layout."""
    if end - pos < 10 or buf[pos] != 0 or buf[pos + 1] > 1:
        return False
    group_size = read_int(buf, pos + 2, 2)
    group_at = pos + 4
    if group_size < 0 or group_size > end - group_at - 6:
        return False
    topic_at = group_at + group_size + 2
    topic_size = read_int(buf, topic_at - 2, 2)
    if topic_size < 0 or topic_size != end - topic_at - 4:
        return False
    commits[GROUP_AT, n] = group_at
    commits[GROUP_SIZE, n] = group_size
    commits[TOPIC_AT, n] = topic_at
    commits[TOPIC_SIZE, n] = topic_size
    commits[PARTITION, n] = read_int(buf, topic_at + topic_size, 4)
    return True


@njit(cache=True, nogil=True)
def _scan_value(buf: Any, pos: Any, end: Any, commits: Any, n: Any) -> Any:
    """Find offset, epoch, metadata and time; return whether the value has a common layout."""
    if end - pos < 20 or buf[pos] != 0 or buf[pos + 1] > 4:
        return False
    version = buf[pos + 1]
    commits[OFFSET, n] = read_int(buf, pos + 2, 8)
    pos += 10
    if version >= 3:
        commits[LEADER_EPOCH, n] = read_int(buf, pos, 4)
        pos += 4
    if version == 4:
        size, pos = _compact_size(buf, pos, end)
        tail = end - pos - size - 8
        # No tags, or only the topic id: tag number, size and id.
        if size < 0 or tail < 1 or not _has_known_tags(buf, end - tail, tail):
            return False
    else:
        size = read_int(buf, pos, 2)
        pos += 2
        if size < 0 or end - pos - size != (16 if version == 1 else 8):
            return False
    commits[METADATA_AT, n] = pos
    commits[METADATA_SIZE, n] = size
    commits[COMMIT_MS, n] = read_int(buf, pos + size, 8)
    return True


@njit(cache=True, nogil=True)
def _compact_size(buf: Any, pos: Any, end: Any) -> Any:
    """The length of a compact string, -1 if it is malformed, and the position of its bytes."""
    size = np.int64(buf[pos] & 0x7F)
    if buf[pos] < 0x80:
        return size - 1, pos + 1
    if pos + 2 > end or not 0 < buf[pos + 1] < 0x80:
        return np.int64(-1), pos
    return (size | np.int64(buf[pos + 1]) << 7) - 1, pos + 2


@njit(cache=True, nogil=True)
def _has_known_tags(buf: Any, pos: Any, size: Any) -> Any:
    if size == 1:
        return buf[pos] == 0
    return size == 19 and buf[pos] == 1 and buf[pos + 1] == 0 and buf[pos + 2] == 16


@njit(cache=True, nogil=True)
def scan_commits(  # noqa: PLR0917  # compiled code takes arrays
    keys: Any, key_edges: Any, values: Any, value_edges: Any, is_removed: Any, commits: Any
) -> Any:
    """Scan all keys and values; return the number of doubtful ones."""
    doubtful = 0
    for n in range(is_removed.shape[0]):
        # Defaults for tombstones.
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
    """Concatenate slices of a buffer: slice n fills `out` from edge n to the next edge."""
    for n in range(at.shape[0]):
        start = at[n] - edges[n]
        for index in range(edges[n], edges[n + 1]):
            out[index] = buf[start + index]
