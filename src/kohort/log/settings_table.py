"""Every topic setting Apache Kafka 4.3 knows: its type, default and bounds, and what it does here.

Documents and DescribeConfigs are made from this table, so a setting is told in one place.
"""

from enum import IntEnum
from typing import Final

from kohort.types import value

_INT_MAX: Final = 2**31 - 1
_LONG_MAX: Final = 2**63 - 1
_DAY: Final = 24 * 60 * 60_000


class Kind(IntEnum):
    """The type of a setting, numbered as DescribeConfigs does."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


@value
class Setting:
    name: str
    kind: Kind
    default: str
    meaning: str
    minimum: float = -_LONG_MAX - 1
    maximum: float = _LONG_MAX
    choices: tuple[str, ...] = ()
    """What a STRING may be, or the parts of a LIST."""
    is_honoured: bool = True
    """Whether it changes anything. Others are checked and kept, for the tools that set them."""
    is_internal: bool = False
    """Not shown to clients; Kafka has these for its tests, and so do we."""


def _long(name: str, default: int, meaning: str, *, minimum: int = 0) -> Setting:
    return Setting(
        name=name, kind=Kind.LONG, default=str(default), meaning=meaning, minimum=minimum
    )


def _int(
    name: str, default: int, meaning: str, *, minimum: int = 0, maximum: int = _INT_MAX
) -> Setting:
    return Setting(
        name=name,
        kind=Kind.INT,
        default=str(default),
        meaning=meaning,
        minimum=minimum,
        maximum=maximum,
    )


def _unhonoured(
    name: str, kind: Kind, default: str, meaning: str, *, minimum: float = 0, maximum: float = 0
) -> Setting:
    highest = maximum or (_INT_MAX if kind is Kind.INT else _LONG_MAX)
    return Setting(
        name=name,
        kind=kind,
        default=default,
        meaning=meaning,
        minimum=minimum,
        maximum=highest,
        is_honoured=False,
    )


_ONE_NODE: Final = "One node keeps every partition, so this changes nothing."
_AS_PRODUCED: Final = "Batches stay as their producers compressed them, so this changes nothing."
_NOT_TIERED: Final = "There is no tiered storage, so this changes nothing."

_SETTINGS: Final = (
    Setting(
        name="cleanup.policy",
        kind=Kind.LIST,
        default="delete",
        choices=("compact", "delete"),
        meaning="What happens to old records: `delete` drops whole segments by age and size, "
        "`compact` keeps the last record of every key, both do both, an empty list neither.",
    ),
    # DEVIATION: Kafka compresses batches again when this names a codec; here it is only kept.
    Setting(
        name="compression.type",
        kind=Kind.STRING,
        default="producer",
        choices=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        meaning="Accepted for tools that set it. " + _AS_PRODUCED,
        is_honoured=False,
    ),
    _unhonoured("compression.gzip.level", Kind.INT, "-1", _AS_PRODUCED, minimum=-1, maximum=9),
    _unhonoured("compression.lz4.level", Kind.INT, "9", _AS_PRODUCED, minimum=1, maximum=17),
    _unhonoured("compression.zstd.level", Kind.INT, "3", _AS_PRODUCED, minimum=-131072, maximum=22),
    _long(
        "delete.retention.ms",
        _DAY,
        "How long compaction keeps a tombstone after it first met it, so that a reader who began "
        "before it was written still learns of the removal.",
    ),
    _unhonoured(
        "file.delete.delay.ms", Kind.LONG, "60000", "Files are removed at once; nobody reads them."
    ),
    _unhonoured(
        "flush.messages",
        Kind.LONG,
        str(_LONG_MAX),
        "The node decides for all topics when it syncs.",
        minimum=1,
    ),
    _unhonoured(
        "flush.ms", Kind.LONG, str(_LONG_MAX), "The node decides for all topics when it syncs."
    ),
    _unhonoured("follower.replication.throttled.replicas", Kind.LIST, "", _ONE_NODE),
    _int(
        "index.interval.bytes",
        4096,
        "How many bytes of batches lie between two entries of the indexes, about.",
    ),
    # Kafka's own back door to segments below a megabyte: what it is tested with.
    Setting(
        name="internal.segment.bytes",
        kind=Kind.INT,
        default="0",
        meaning="Takes the place of segment.bytes unless it is 0.",
        minimum=0,
        maximum=_INT_MAX,
        is_internal=True,
    ),
    _unhonoured("leader.replication.throttled.replicas", Kind.LIST, "", _ONE_NODE),
    _unhonoured("local.retention.bytes", Kind.LONG, "-2", _NOT_TIERED, minimum=-2),
    _unhonoured("local.retention.ms", Kind.LONG, "-2", _NOT_TIERED, minimum=-2),
    _long(
        "max.compaction.lag.ms",
        _LONG_MAX,
        "The longest time a record may wait for compaction, however little of the log is dirty.",
        minimum=1,
    ),
    _int("max.message.bytes", 1_048_588, "The largest batch that is accepted, as compressed."),
    _long(
        "message.timestamp.after.max.ms",
        3_600_000,
        "How far into the future a producer's timestamp may point.",
    ),
    _long(
        "message.timestamp.before.max.ms",
        _LONG_MAX,
        "How far into the past a producer's timestamp may point. Anything but the default costs "
        "a look at every record.",
    ),
    Setting(
        name="message.timestamp.type",
        kind=Kind.STRING,
        default="CreateTime",
        choices=("CreateTime", "LogAppendTime"),
        meaning="Whose clock a record's timestamp is from: its producer's or this node's.",
    ),
    Setting(
        name="min.cleanable.dirty.ratio",
        kind=Kind.DOUBLE,
        default="0.5",
        meaning="The part of the log that must be uncompacted before compaction is worth it.",
        minimum=0,
        maximum=1,
    ),
    _long("min.compaction.lag.ms", 0, "How long a record is safe from compaction."),
    _unhonoured("min.insync.replicas", Kind.INT, "1", _ONE_NODE, minimum=1),
    _unhonoured("preallocate", Kind.BOOLEAN, "false", "Files grow as they are written."),
    _unhonoured("remote.log.copy.disable", Kind.BOOLEAN, "false", _NOT_TIERED),
    _unhonoured("remote.log.delete.on.disable", Kind.BOOLEAN, "false", _NOT_TIERED),
    Setting(
        name="remote.storage.enable",
        kind=Kind.BOOLEAN,
        default="false",
        meaning="There is no tiered storage, so this can only be false.",
    ),
    _long(
        "retention.bytes",
        -1,
        "How large a partition may grow before its oldest segments go; -1 for any size.",
        minimum=-_LONG_MAX - 1,
    ),
    _long(
        "retention.ms",
        7 * _DAY,
        "How long after its latest record a segment goes; -1 for never.",
        minimum=-1,
    ),
    _int(
        "segment.bytes",
        1 << 30,
        "How large a segment's file may grow. Only whole segments are dropped or compacted, and "
        "never the last one.",
        minimum=1 << 20,
    ),
    _int("segment.index.bytes", 10 << 20, "How large a segment's index may grow.", minimum=4),
    # DEVIATION: Kafka spreads rolling by a random part of this, and one node needs no spreading.
    _unhonoured("segment.jitter.ms", Kind.LONG, "0", "Segments roll when they are due."),
    _long(
        "segment.ms",
        7 * _DAY,
        "How much later than a segment's first batch its last one may be; then the next begins.",
        minimum=1,
    ),
    _unhonoured("unclean.leader.election.enable", Kind.BOOLEAN, "false", _ONE_NODE),
)

SETTINGS: Final = {setting.name: setting for setting in _SETTINGS}
