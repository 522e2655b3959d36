"""The names of all files and directories in a data directory. They are Kafka's."""

import re
from typing import Final

from kohort.log.errors import RequestRejected
from kohort.types import ErrorCode, Offset, Partition, Topic, Uuid, value

LOG: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TRANSACTION_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
SEGMENT_SUFFIXES: Final = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)

CLEANED: Final = ".cleaned"
"""A file that compaction is writing; removed after a crash."""
SWAP: Final = ".swap"
"""A finished file of compaction; after a crash it replaces the files it was made from."""
DELETED: Final = ".deleted"
"""A file that Kafka is about to remove."""

PARTITION_METADATA: Final = "partition.metadata"
SEGMENT_LIST: Final = "kohort-segments"
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"

START_OFFSETS: Final = "log-start-offset-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
CLEANED_OFFSETS: Final = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
CATALOG: Final = "kohort-catalog.json"
CATALOG_JOURNAL: Final = "kohort-catalog.journal"
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
class SegmentFileName:
    """The parts of the name of a file in a partition directory."""

    offset: Offset
    kind: str
    stage: str
    """CLEANED, SWAP or DELETED; empty for a file that is in use."""


def segment_file(offset: int, kind: str, stage: str = "") -> str:
    return f"{offset:020d}{kind}{stage}"


def parse_segment_file(name: str) -> SegmentFileName | None:
    match = _SEGMENT_FILE.fullmatch(name)
    if match is None:
        return None
    return SegmentFileName(offset=Offset(int(match[1])), kind=match[2], stage=match[3] or "")


def partition_directory(topic: Topic, partition: int) -> str:
    return f"{topic}-{partition}"


def parse_partition_directory(directory: str) -> tuple[Topic, Partition] | None:
    """The topic and partition, or None if the name is not that of a partition directory."""
    match = _PARTITION_DIRECTORY.fullmatch(directory)
    if match is None or match[2] != str(int(match[2])):
        return None
    return Topic(match[1]), Partition(int(match[2]))


def suffixed_directory(topic: Topic, partition: int, topic_id: Uuid, suffix: str) -> str:
    """The name of a deleted or stray partition directory.

    Kafka uses a random id. The topic id is also unique, and needs no random number.
    """
    tail = f"-{partition}.{topic_id.hex()}{suffix}"
    return topic[: _DIRECTORY_NAME_MAX - len(tail)] + tail


def check_topic_name(name: str) -> None:
    """A topic name is part of a path, so it must be checked before every use as one."""
    code = ErrorCode.INVALID_TOPIC_EXCEPTION
    if not _TOPIC_NAME.fullmatch(name):
        raise RequestRejected(
            code, f"topic {name!r}: only letters, digits, '.', '_' and '-' are allowed"
        )
    if name in (".", ".."):
        raise RequestRejected(code, f"topic {name!r}: this name is not allowed")
    if len(name) > TOPIC_NAME_CHARACTERS_MAX:
        limit = TOPIC_NAME_CHARACTERS_MAX
        raise RequestRejected(
            code, f"topic {name[:32]!r}...: {len(name)} characters, at most {limit} are allowed"
        )
