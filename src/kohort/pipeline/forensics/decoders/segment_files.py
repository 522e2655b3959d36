"""Find the segment files of a copied log directory.

A location is a path or a URI that Arrow can open, such as `hdfs://` or `s3://`.
"""

from pathlib import PurePosixPath
from typing import Any, Final

import pyarrow as pa
from pyarrow import fs

from kohort.events.internal_topics import CONSUMER_OFFSETS, KOHORT_EVENTS
from kohort.log.file_names import LOG, parse_partition_directory, parse_segment_file
from kohort.pipeline.errors import PipelineError
from kohort.types import Offset, Partition, Topic, value

TOPICS: Final = frozenset((CONSUMER_OFFSETS, KOHORT_EVENTS))
"""The topics with data about groups; all other topics of a log directory are ignored."""

_NO_STOP: Final = Offset(2**63 - 1)


class NoLog(PipelineError):
    """The location has no log of a group topic."""


@value
class SegmentFile:
    """One segment file. If segments overlap, the later one has the offset."""

    location: str
    """The location of the log, which determines the file system."""
    path: str
    topic: Topic
    partition: Partition
    first: Offset
    stop: Offset
    size: int

    @property
    def is_last(self) -> bool:
        return self.stop == _NO_STOP


def list_segments(location: str) -> tuple[SegmentFile, ...]:
    """All segments of a log directory or of one partition's directory, in order."""
    system, root = _find_system(location)
    directory = system.get_file_info(root)
    if directory.type is not fs.FileType.Directory:
        raise NoLog(f"{location}: no such directory")
    own = parse_partition_directory(PurePosixPath(root).name)
    if own is not None and own[0] in TOPICS:
        return _segments_of(system, location, root, *own)
    found: list[SegmentFile] = []
    for info in sorted(system.get_file_info(fs.FileSelector(root)), key=lambda each: each.path):
        named = parse_partition_directory(info.base_name)
        if info.type is fs.FileType.Directory and named is not None and named[0] in TOPICS:
            found += _segments_of(system, location, info.path, *named)
    if not found:
        raise NoLog(f"{location}: no segment of {CONSUMER_OFFSETS} or {KOHORT_EVENTS} found")
    return tuple(found)


def list_following(segment: SegmentFile) -> tuple[SegmentFile, ...]:
    """The later segments of the same partition."""
    system, _ = _find_system(segment.location)
    directory = str(PurePosixPath(segment.path).parent)
    named = _segments_of(system, segment.location, directory, segment.topic, segment.partition)
    return tuple(each for each in named if each.first > segment.first)


def open_segment(segment: SegmentFile) -> Any:
    """The file as an Arrow input stream."""
    return _find_system(segment.location)[0].open_input_stream(segment.path)


def read_segment(segment: SegmentFile, position: int, size: int) -> bytes:
    with _find_system(segment.location)[0].open_input_file(segment.path) as file:
        content: bytes = file.read_at(size, position)
        return content


def _find_system(location: str) -> tuple[Any, str]:
    try:
        system, path = fs.FileSystem.from_uri(location)
    except pa.ArrowInvalid as error:
        raise NoLog(f"{location}: neither an absolute path nor a URI: {error}") from None
    return system, path.rstrip("/") or "/"


def _segments_of(
    system: Any, location: str, directory: str, topic: Topic, partition: Partition
) -> tuple[SegmentFile, ...]:
    files = []
    for info in system.get_file_info(fs.FileSelector(directory)):
        named = parse_segment_file(info.base_name)
        # Skip .cleaned, .swap and .deleted files of compaction.
        if named is not None and named.kind == LOG and not named.stage:
            files.append((named.offset, info))
    files.sort(key=lambda each: each[0])
    stops = [offset for offset, _ in files[1:]] + [_NO_STOP]
    return tuple(
        SegmentFile(
            location=location,
            path=info.path,
            topic=topic,
            partition=partition,
            first=offset,
            stop=stop,
            size=info.size,
        )
        for (offset, info), stop in zip(files, stops, strict=True)
    )
