"""Which files of a copied log directory hold records, wherever the copy lies.

A place is a path or an address that Arrow can open, such as `hdfs://` or `s3://`. It is looked at
where records are decoded, never by whoever asked for them.
"""

from pathlib import PurePosixPath
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs

from kohort.log.names import LOG, find_partition, find_segment_file
from kohort.pipeline.errors import PipelineError
from kohort.types import Offset, Partition, Topic, value

OFFSETS: Final = Topic("__consumer_offsets")
EVENTS: Final = Topic("__kohort_events")
TOPICS: Final = frozenset((OFFSETS, EVENTS))
"""The topics that tell of groups; all others in a log directory are left alone."""

_NO_STOP: Final = Offset(2**63 - 1)


class NoLog(PipelineError):
    """There is no log where one should be."""


@value
class Segment:
    """One file of batches. Of overlapping ones, each offset belongs to the later."""

    place: str
    """Where the log is: what tells which file system it is on."""
    path: str
    topic: Topic
    partition: Partition
    first: Offset
    stop: Offset
    size: int

    @property
    def is_last(self) -> bool:
        return self.stop == _NO_STOP


def list_segments(place: str) -> tuple[Segment, ...]:
    """All segments of a log directory, or of one partition's directory, in their order."""
    system, root = _find_system(place)
    directory = system.get_file_info(root)
    if directory.type is not fs.FileType.Directory:
        raise NoLog(f"{place}: there is no such directory")
    own = find_partition(PurePosixPath(root).name)
    if own is not None and own[0] in TOPICS:
        return _segments_of(system, place, root, *own)
    found: list[Segment] = []
    for info in sorted(system.get_file_info(fs.FileSelector(root)), key=lambda each: each.path):
        named = find_partition(info.base_name)
        if info.type is fs.FileType.Directory and named is not None and named[0] in TOPICS:
            found += _segments_of(system, place, info.path, *named)
    if not found:
        raise NoLog(f"{place}: neither {OFFSETS} nor {EVENTS} has a segment here")
    return tuple(found)


def list_following(segment: Segment) -> tuple[Segment, ...]:
    """The segments of the same partition that come after this one."""
    system, _ = _find_system(segment.place)
    directory = str(PurePosixPath(segment.path).parent)
    named = _segments_of(system, segment.place, directory, segment.topic, segment.partition)
    return tuple(each for each in named if each.first > segment.first)


def open_segment(segment: Segment) -> Any:
    """The file from its beginning, as a stream of Arrow's."""
    return _find_system(segment.place)[0].open_input_stream(segment.path)


def read_segment(segment: Segment, position: int, size: int) -> bytes:
    with _find_system(segment.place)[0].open_input_file(segment.path) as file:
        content: bytes = file.read_at(size, position)
        return content


def _find_system(place: str) -> tuple[Any, str]:
    try:
        system, path = fs.FileSystem.from_uri(place)
    except pa.ArrowInvalid as error:
        raise NoLog(f"{place}: neither an absolute path nor an address: {error}") from None
    return system, path.rstrip("/") or "/"


def _segments_of(
    system: Any, place: str, directory: str, topic: Topic, partition: Partition
) -> tuple[Segment, ...]:
    files = []
    for info in system.get_file_info(fs.FileSelector(directory)):
        named = find_segment_file(info.base_name)
        # What compaction has not put in its place yet, or has thrown out, is told elsewhere.
        if named is not None and named.kind == LOG and not named.stage:
            files.append((named.offset, info))
    files.sort(key=lambda each: each[0])
    stops = [offset for offset, _ in files[1:]] + [_NO_STOP]
    return tuple(
        Segment(
            place=place,
            path=info.path,
            topic=topic,
            partition=partition,
            first=offset,
            stop=stop,
            size=info.size,
        )
        for (offset, info), stop in zip(files, stops, strict=True)
    )
