"""Topics: partitions, sizes, consumer groups and records."""

from typing import Any, Final

from kohort.admin import topics as topic_admin
from kohort.admin.errors import AdminError
from kohort.admin.offsets import list_offsets
from kohort.console.page import NotFound, Page, PageRequest, read_number
from kohort.console.record_browser import COUNT_MAX, browse
from kohort.console.url_encoding import with_query
from kohort.types import GroupId, Partition, Topic, TopicPartition, value

PER_PAGE: Final = 50
PARTITIONS_SHOWN: Final = 500


@value
class TopicRow:
    topic: Topic
    is_internal: bool
    partitions: int
    replication: int
    size: int | None
    """Bytes of the leader replicas; None if the cluster does not report it."""
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


def topics(request: PageRequest) -> Page:
    described = topic_admin.list_topics(request.context.cluster)
    with request.context.monitor.locked_state() as state:
        readers = state.readers()
    search = request.query.get("search", "").strip()
    with_internal = request.query.get("internal", "") == "yes"
    found = [
        each
        for each in described
        if search.casefold() in each.topic.casefold() and (with_internal or not each.is_internal)
    ]
    pages = max(1, -(-len(found) // PER_PAGE))
    page = min(read_number(request.query, "page", 1, 1, 1_000_000), pages)
    shown = found[(page - 1) * PER_PAGE : page * PER_PAGE]
    sizes = _sizes(request, [each.topic for each in shown])
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
    params = {"search": search, "internal": "yes" if with_internal else ""}
    return Page(
        template="topics.html",
        title="Topics",
        data={"rows": rows, "found": len(found), "page": page, "pages": pages},
        template_data={
            "params": params,
            "hidden": sum(each.is_internal for each in described) if not with_internal else 0,
            "previous": _link(request, params, page - 1, pages),
            "next": _link(request, params, page + 1, pages),
        },
        refresh_s=5.0,
    )


def _sizes(request: PageRequest, topics: list[Topic]) -> dict[TopicPartition, int]:
    """Empty if the cluster does not report sizes, for example without authorization."""
    try:
        return topic_admin.partition_sizes(request.context.cluster, topics)
    except AdminError:
        return {}


def _sum(sizes: dict[TopicPartition, int], topic: topic_admin.TopicDescription) -> int | None:
    known = [
        sizes[partition]
        for each in topic.partitions
        if (partition := TopicPartition(topic.topic, each.partition)) in sizes
    ]
    return sum(known) if known else None


def _link(request: PageRequest, params: dict[str, str], number: int, pages: int) -> str | None:
    if not 1 <= number <= pages:
        return None
    return with_query(request.path, {**params, "page": number if number > 1 else ""})


def topic(request: PageRequest) -> Page:
    name, described = _find(request)
    partitions = [TopicPartition(name, each.partition) for each in described.partitions]
    starts = list_offsets(request.context.cluster, partitions, "earliest")
    latest = list_offsets(request.context.cluster, partitions, "latest")
    sizes = _sizes(request, [name])
    with request.context.monitor.locked_state() as state:
        readers = sorted(state.readers().get(name, ()))
        groups = [state.find_group(GroupId(each), request.now_ms) for each in readers[:100]]
    rows = tuple(
        PartitionRow(
            partition=each.partition,
            leader=each.leader,
            replicas=each.replicas,
            in_sync=each.in_sync,
            start=starts.get(partition),
            end=latest.get(partition),
            size=sizes.get(partition),
        )
        for each, partition in zip(described.partitions, partitions, strict=True)
    )
    settings = [
        each
        for each in topic_admin.describe_config(request.context.cluster, name)
        if not each.is_default
    ]
    return Page(
        template="topic.html",
        title=name,
        data={
            "topic": name,
            "is_internal": described.is_internal,
            "replication": described.replication,
            "partitions": rows,
            "size": _sum(sizes, described),
            "settings": settings,
            "readers": readers,
        },
        template_data={
            "rows": rows[:PARTITIONS_SHOWN],
            "groups": [_reader(each.row, each.offsets, name) for each in groups if each],
        },
        refresh_s=5.0,
    )


def _reader(row: Any, readings: Any, topic: Topic) -> dict[str, Any]:
    """The lag of one group in this topic."""
    lags = [each.lag for each in readings if each.partition.topic == topic]
    known = [each for each in lags if each is not None]
    return {"row": row, "partitions": len(lags), "lag": sum(known) if known else None}


def records(request: PageRequest) -> Page:
    name, described = _find(request)
    most = max((each.partition for each in described.partitions), default=0)
    partition = Partition(read_number(request.query, "partition", 0, 0, most))
    count = read_number(request.query, "count", 20, 1, COUNT_MAX)
    given = request.query.get("offset", "").strip()
    offset = read_number(request.query, "offset", 0, 0, 2**63 - 1) if given else None
    browsed = browse(request.context.cluster, name, partition, offset=offset, count=count)
    params = {"partition": partition, "count": count}
    first = browsed.records[0].offset if browsed.records else browsed.end
    return Page(
        template="records.html",
        title=f"Records of {name}",
        data={"topic": name, "partition": partition, "page": browsed},
        template_data={
            "partitions": [each.partition for each in described.partitions],
            "count": count,
            "offset": given,
            "older": (
                with_query(request.path, {**params, "offset": max(browsed.start, first - count)})
                if first > browsed.start
                else None
            ),
            "newer": (
                with_query(request.path, {**params, "offset": browsed.next})
                if browsed.next < browsed.end
                else None
            ),
            "newest": with_query(request.path, params),
        },
        refresh_s=None,
    )


def _find(request: PageRequest) -> tuple[Topic, topic_admin.TopicDescription]:
    name = Topic(request.path_params["topic"])
    described = topic_admin.describe_topics(request.context.cluster, [name]).get(name)
    if described is None:
        raise NotFound(f"there is no topic {name!r} on this cluster")
    return name, described
