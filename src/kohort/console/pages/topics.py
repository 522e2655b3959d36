"""Topics: their partitions and sizes, which groups read them, and their records."""

from typing import Any, Final

from kohort.admin import topics as asking
from kohort.admin.errors import AdminError
from kohort.admin.offsets import ends
from kohort.client.topic_partition import TopicPartition
from kohort.console.address import with_query
from kohort.console.browsing import COUNT_MAX, browse
from kohort.console.page import NotFound, Page, Visit, read_number
from kohort.types import GroupId, Partition, Topic, value

PER_PAGE: Final = 50
PARTITIONS_SHOWN: Final = 500


@value
class TopicRow:
    topic: Topic
    is_internal: bool
    partitions: int
    replication: int
    size: int | None
    """In bytes, of the leaders' copies; None where the cluster does not tell."""
    readers: int


@value
class PartitionRow:
    partition: Partition
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start: int | None
    end: int | None
    size: int | None


def topics(visit: Visit) -> Page:
    described = asking.list_topics(visit.desk.cluster)
    with visit.desk.following.look() as picture:
        readers = picture.readers()
    search = visit.query.get("search", "").strip()
    with_internal = visit.query.get("internal", "") == "yes"
    found = [
        each
        for each in described
        if search.casefold() in each.topic.casefold() and (with_internal or not each.is_internal)
    ]
    pages = max(1, -(-len(found) // PER_PAGE))
    page = min(read_number(visit.query, "page", 1, 1, 1_000_000), pages)
    shown = found[(page - 1) * PER_PAGE : page * PER_PAGE]
    sizes = _sizes(visit, [each.topic for each in shown])
    rows = tuple(
        TopicRow(
            topic=each.topic,
            is_internal=each.is_internal,
            partitions=len(each.partitions),
            replication=each.replication,
            size=_sum(sizes, each),
            readers=len(readers.get(each.topic, ())),
        )
        for each in shown
    )
    asked = {"search": search, "internal": "yes" if with_internal else ""}
    return Page(
        template="topics.html",
        title="Topics",
        told={"rows": rows, "found": len(found), "page": page, "pages": pages},
        shown={
            "asked": asked,
            "hidden": sum(each.is_internal for each in described) if not with_internal else 0,
            "previous": _link(visit, asked, page - 1, pages),
            "next": _link(visit, asked, page + 1, pages),
        },
        pace_s=5.0,
    )


def _sizes(visit: Visit, topics: list[Topic]) -> dict[TopicPartition, int]:
    """None of them where the cluster does not tell: some do not let everybody ask."""
    try:
        return asking.sizes(visit.desk.cluster, topics)
    except AdminError:
        return {}


def _sum(sizes: dict[TopicPartition, int], topic: asking.DescribedTopic) -> int | None:
    known = [
        sizes[place]
        for each in topic.partitions
        if (place := TopicPartition(topic.topic, each.partition)) in sizes
    ]
    return sum(known) if known else None


def _link(visit: Visit, asked: dict[str, str], number: int, pages: int) -> str | None:
    if not 1 <= number <= pages:
        return None
    return with_query(visit.path, {**asked, "page": number if number > 1 else ""})


def topic(visit: Visit) -> Page:
    name, described = _find(visit)
    places = [TopicPartition(name, each.partition) for each in described.partitions]
    starts = ends(visit.desk.cluster, places, "earliest")
    latest = ends(visit.desk.cluster, places, "latest")
    sizes = _sizes(visit, [name])
    with visit.desk.following.look() as picture:
        readers = sorted(picture.readers().get(name, ()))
        groups = [picture.find_group(GroupId(each), visit.now_ms) for each in readers[:100]]
    rows = tuple(
        PartitionRow(
            partition=each.partition,
            leader=each.leader,
            replicas=each.replicas,
            in_sync=each.in_sync,
            start=starts.get(place),
            end=latest.get(place),
            size=sizes.get(place),
        )
        for each, place in zip(described.partitions, places, strict=True)
    )
    settings = [each for each in asking.settings(visit.desk.cluster, name) if not each.is_default]
    return Page(
        template="topic.html",
        title=name,
        told={
            "topic": name,
            "is_internal": described.is_internal,
            "replication": described.replication,
            "partitions": rows,
            "size": _sum(sizes, described),
            "settings": settings,
            "readers": readers,
        },
        shown={
            "rows": rows[:PARTITIONS_SHOWN],
            "groups": [_reader(each.row, each.readings, name) for each in groups if each],
        },
        pace_s=5.0,
    )


def _reader(row: Any, readings: Any, topic: Topic) -> dict[str, Any]:
    """How one group stands in this topic alone."""
    lags = [each.lag for each in readings if each.partition.topic == topic]
    known = [each for each in lags if each is not None]
    return {"row": row, "partitions": len(lags), "lag": sum(known) if known else None}


def records(visit: Visit) -> Page:
    name, described = _find(visit)
    most = max((each.partition for each in described.partitions), default=0)
    partition = Partition(read_number(visit.query, "partition", 0, 0, most))
    count = read_number(visit.query, "count", 20, 1, COUNT_MAX)
    given = visit.query.get("offset", "").strip()
    offset = read_number(visit.query, "offset", 0, 0, 2**63 - 1) if given else None
    browsed = browse(visit.desk.cluster, name, partition, offset=offset, count=count)
    asked = {"partition": partition, "count": count}
    first = browsed.records[0].offset if browsed.records else browsed.end
    last = browsed.records[-1].offset if browsed.records else browsed.end
    return Page(
        template="records.html",
        title=f"Records of {name}",
        told={"topic": name, "partition": partition, "browsed": browsed},
        shown={
            "partitions": [each.partition for each in described.partitions],
            "count": count,
            "offset": given,
            "older": (
                with_query(visit.path, {**asked, "offset": max(browsed.start, first - count)})
                if first > browsed.start
                else None
            ),
            "newer": (
                with_query(visit.path, {**asked, "offset": last + 1})
                if last + 1 < browsed.end
                else None
            ),
            "newest": with_query(visit.path, asked),
        },
        pace_s=None,
    )


def _find(visit: Visit) -> tuple[Topic, asking.DescribedTopic]:
    name = Topic(visit.names["topic"])
    described = asking.describe_topics(visit.desk.cluster, [name]).get(name)
    if described is None:
        raise NotFound(f"there is no topic {name!r} on this cluster")
    return name, described
