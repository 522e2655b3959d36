"""What files and directories are called: Kafka's names, and nothing else decides where bytes go."""

import re
from typing import Final

from kohort.log.errors import Refused
from kohort.types import ErrorCode, Offset, Partition, Topic, Uuid, value

LOG: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TRANSACTION_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
SEGMENT_SUFFIXES: Final = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)

CLEANED: Final = ".cleaned"
"""Compaction is still writing it: worthless after a crash."""
SWAP: Final = ".swap"
"""Compaction has finished it: after a crash it takes the place of what it was made from."""
DELETED: Final = ".deleted"
"""Kafka's mark for a file about to be removed."""

PARTITION_METADATA: Final = "partition.metadata"
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"

START_OFFSETS: Final = "log-start-offset-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
CLEANED_OFFSETS: Final = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
CATALOG: Final = "kohort-catalog.json"
LOCK: Final = ".lock"
KAFKA_PROPERTIES: Final = "meta.properties"

DELETE_DIRECTORY: Final = "-delete"
STRAY_DIRECTORY: Final = "-stray"

TOPIC_NAME_CHARACTERS_MAX: Final = 249
_DIRECTORY_NAME_MAX: Final = 255
_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
_SEGMENT_FILE: Final = re.compile(
    r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.cleaned|\.swap|\.deleted)?"
)
_PARTITION_DIRECTORY: Final = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)")


@value
class SegmentFile:
    """What the name of a file in a partition's directory says."""

    offset: Offset
    kind: str
    stage: str
    """CLEANED, SWAP or DELETED; empty for a file that is in use."""


def segment_file(offset: int, kind: str, stage: str = "") -> str:
    return f"{offset:020d}{kind}{stage}"


def find_segment_file(name: str) -> SegmentFile | None:
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None:
        return None
    return SegmentFile(offset=Offset(int(match[1])), kind=match[2], stage=match[3] or "")


def partition_directory(topic: Topic, partition: int) -> str:
    return f"{topic}-{partition}"


def find_partition(directory: str) -> tuple[Topic, Partition] | None:
    """The partition a directory is named after, if it is named after one."""
    match = _PARTITION_DIRECTORY.fullmatch(directory)
    if match is None or match[2] != str(int(match[2])):
        return None
    return Topic(match[1]), Partition(int(match[2]))


def doomed_directory(topic: Topic, partition: int, topic_id: Uuid, ending: str) -> str:
    """Where a partition's directory waits for its removal, or for somebody to look at it.

    Kafka draws a fresh id; the topic's own serves as well, and needs no die.
    """
    tail = f"-{partition}.{topic_id.hex()}{ending}"
    return topic[: _DIRECTORY_NAME_MAX - len(tail)] + tail


def check_topic_name(name: str) -> None:
    """A topic becomes part of a path, so it is checked wherever one is made."""
    code = ErrorCode.INVALID_TOPIC_EXCEPTION
    if not _TOPIC_NAME.fullmatch(name):
        raise Refused(code, f"topic {name!r}: letters, digits, '.', '_' and '-' make a name")
    if name in (".", ".."):
        raise Refused(code, f"topic {name!r}: this name is a directory's")
    if len(name) > TOPIC_NAME_CHARACTERS_MAX:
        limit = TOPIC_NAME_CHARACTERS_MAX
        raise Refused(code, f"topic {name[:32]!r}...: {len(name)} characters, at most {limit}")
