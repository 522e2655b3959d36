"""Every figure of the node: its name, its meaning, what Kafka calls it and where it is read.

A figure is a row here and nowhere else: the page and the documents are made from the rows. Reading
happens when somebody asks, on the node's own loop.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal, TypeAlias

from kohort.coordinator.machine import Phase
from kohort.coordinator.notes import Ending, Trigger
from kohort.coordinator.states import GroupState
from kohort.log.partition import PartitionLog
from kohort.node.broker import Broker
from kohort.node.metrics import OTHER, Figures, GroupFigures, Histogram, Histograms
from kohort.types import ErrorCode, value
from kohort.wire.api import find_api

Sample: TypeAlias = tuple[tuple[str, ...], float | Histogram]
"""The values of the labels, and the figure."""

Read: TypeAlias = Callable[[Broker], Iterable[Sample]]


@value
class Metric:
    name: str
    """As it is queried, but for what Prometheus appends to the parts of a histogram."""
    kind: Literal["counter", "gauge", "histogram"]
    meaning: str
    read: Read
    labels: tuple[str, ...] = ()
    kafka: str = ""
    """What this is called in Kafka, or the nearest there is."""


def _alone(read: Callable[[Broker], float | Histogram]) -> Read:
    """A figure without labels."""
    return lambda broker: [((), read(broker))]


def _api_name(key: int) -> str:
    api = find_api(key)
    assert api is not None, f"API key {key} was answered, and has no name"
    return api.name


# Groups


def _groups(broker: Broker) -> Iterator[Sample]:
    states = Counter(group.roster.state for group in broker.groups.coordinator.groups.values())
    for state in GroupState:
        yield (state,), states[state]


def _members(broker: Broker) -> Iterable[Sample]:
    """Groups that never had a member, as far as is known, are not told one by one."""
    figures = broker.figures
    members: Counter[str] = Counter()
    for group_id, group in broker.groups.coordinator.groups.items():
        if group.roster.members:
            figures.of_group(group_id)
        if group.roster.members or group_id in figures.groups:
            members[figures.label(group_id)] += len(group.roster.members)
    return [((label,), count) for label, count in members.items()]


def _by_group(words: Callable[[GroupFigures], Counter[str]]) -> Read:
    return lambda broker: [
        ((label, word), count)
        for label, figures in broker.figures.groups.items()
        for word, count in words(figures).items()
    ]


def _offsets(broker: Broker) -> int:
    return sum(
        len(partitions)
        for group in broker.groups.coordinator.groups.values()
        for partitions in group.offsets.committed.values()
    )


def _phases(broker: Broker) -> Iterator[Sample]:
    for phase in Phase:
        yield (phase,), int(phase is broker.groups.coordinator.phase)


def _by_trigger(of: Callable[[Figures], Histograms[Trigger]]) -> Read:
    return lambda broker: [((trigger,), each) for trigger, each in of(broker.figures).items()]


_GROUPS: Final = (
    Metric(
        name="kohort_groups",
        kind="gauge",
        meaning="Groups, by state.",
        labels=("state",),
        kafka="NumGroups, NumGroupsStable and so on; group-count",
        read=_groups,
    ),
    Metric(
        name="kohort_group_members",
        kind="gauge",
        meaning="Members of a group.",
        labels=("group",),
        read=_members,
    ),
    Metric(
        name="kohort_group_completed_rebalances_total",
        kind="counter",
        meaning="Rebalances that ended with a kept assignment.",
        kafka="group-completed-rebalance-count",
        read=_alone(lambda broker: broker.figures.endings[Ending.STABLE]),
    ),
    Metric(
        name="kohort_group_rebalances_total",
        kind="counter",
        meaning="Rebalances that began, by group and by what triggered them.",
        labels=("group", "trigger"),
        read=_by_group(lambda figures: figures.rebalances),
    ),
    Metric(
        name="kohort_rebalances_ended_total",
        kind="counter",
        meaning="Rebalances that ended, by how they did.",
        labels=("ending",),
        read=lambda broker: [((each,), broker.figures.endings[each]) for each in Ending],
    ),
    Metric(
        name="kohort_rebalance_seconds",
        kind="histogram",
        meaning="How long rebalances took, however they ended, by what triggered them.",
        labels=("trigger",),
        read=_by_trigger(lambda figures: figures.rebalance_seconds),
    ),
    Metric(
        name="kohort_rebalance_join_seconds",
        kind="histogram",
        meaning="How long it took until all had joined, or were no longer waited for.",
        labels=("trigger",),
        read=_by_trigger(lambda figures: figures.join_seconds),
    ),
    Metric(
        name="kohort_rebalance_sync_seconds",
        kind="histogram",
        meaning="How long it took from then until the assignment was kept, or would never be.",
        labels=("trigger",),
        read=_by_trigger(lambda figures: figures.sync_seconds),
    ),
    Metric(
        name="kohort_member_departures_total",
        kind="counter",
        meaning="Members that are out, by group and by how their membership ended.",
        labels=("group", "departure"),
        read=_by_group(lambda figures: figures.departures),
    ),
    Metric(
        name="kohort_coordinator_phase",
        kind="gauge",
        meaning="1 for the phase the coordinator is in, 0 for the others.",
        labels=("phase",),
        kafka="num-partitions{state}",
        read=_phases,
    ),
)

# Offsets

_OFFSETS: Final = (
    Metric(
        name="kohort_offsets",
        kind="gauge",
        meaning="Committed offsets, of all groups.",
        kafka="NumOffsets",
        read=_alone(_offsets),
    ),
    Metric(
        name="kohort_offset_commits_total",
        kind="counter",
        meaning="Offsets committed: one for every partition of every commit that was kept.",
        kafka="offset-commit-count",
        read=_alone(lambda broker: broker.figures.offset_commits),
    ),
    Metric(
        name="kohort_offset_expirations_total",
        kind="counter",
        meaning="Offsets let go of since nobody had needed them for the retention time.",
        kafka="offset-expiration-count",
        read=_alone(lambda broker: broker.figures.offset_expirations),
    ),
    Metric(
        name="kohort_offset_deletions_total",
        kind="counter",
        meaning="Offsets deleted: by request, with their group, or with their topic.",
        kafka="offset-deletion-count",
        read=_alone(lambda broker: broker.figures.offset_deletions),
    ),
    Metric(
        name="kohort_commits_refused_total",
        kind="counter",
        meaning="Commits that were refused as a whole, by group and by error.",
        labels=("group", "error"),
        read=_by_group(lambda figures: figures.refused_commits),
    ),
    Metric(
        name="kohort_records_not_kept_total",
        kind="counter",
        meaning="Times the coordinator's records could not be kept, by what the log said.",
        labels=("error",),
        read=lambda broker: [((e.name,), count) for e, count in broker.figures.not_kept.items()],
    ),
    Metric(
        name="kohort_partition_load_seconds",
        kind="gauge",
        meaning="How long reading a partition of __consumer_offsets took at the start, with what "
        "else was answered meanwhile.",
        labels=("partition",),
        kafka="partition-load-time-max, -avg",
        read=lambda broker: [((str(p),), took) for p, took in broker.figures.load_seconds.items()],
    ),
    Metric(
        name="kohort_records_skipped_total",
        kind="counter",
        meaning="Records of __consumer_offsets that were skipped when it was read at the start.",
        read=_alone(lambda broker: broker.skipped_records),
    ),
    Metric(
        name="kohort_events_lost_total",
        kind="counter",
        meaning="Events that could not be written to __kohort_events.",
        read=_alone(lambda broker: broker.figures.events_lost),
    ),
)

# Requests


def _latencies(broker: Broker) -> Iterator[Sample]:
    for key, histogram in enumerate(broker.figures.requests):
        if any(histogram.counts):
            yield (_api_name(key),), histogram


def _errors(broker: Broker) -> Iterator[Sample]:
    for (key, code), count in broker.figures.errors.items():
        yield (_api_name(key), ErrorCode(code).name), count


def _parked(broker: Broker) -> Iterator[Sample]:
    yield ("group",), broker.groups.open_tickets
    yield ("fetch",), len(broker.fetches)


_REQUESTS: Final = (
    Metric(
        name="kohort_request_seconds",
        kind="histogram",
        meaning="From taking up a request until its answer is written, by API: with the time a "
        "join or a fetch is parked, and with the time a write is synced.",
        labels=("api",),
        kafka="RequestsPerSec, TotalTimeMs",
        read=_latencies,
    ),
    Metric(
        name="kohort_request_errors_total",
        kind="counter",
        meaning="Requests whose answer tells an error, by API and by the first error in it.",
        labels=("api", "error"),
        kafka="ErrorsPerSec",
        read=_errors,
    ),
    Metric(
        name="kohort_requests_parked",
        kind="gauge",
        meaning="Requests that wait: for a group or for a sync of its records, or for something "
        "to fetch.",
        labels=("for",),
        kafka="PurgatorySize",
        read=_parked,
    ),
    Metric(
        name="kohort_bytes_in_total",
        kind="counter",
        meaning="Bytes received from clients.",
        kafka="incoming-byte-total",
        read=_alone(lambda broker: broker.figures.bytes_in),
    ),
    Metric(
        name="kohort_bytes_out_total",
        kind="counter",
        meaning="Bytes of answers written to clients.",
        kafka="outgoing-byte-total",
        read=_alone(lambda broker: broker.figures.bytes_out),
    ),
    Metric(
        name="kohort_connections",
        kind="gauge",
        meaning="Open connections.",
        kafka="connection-count",
        read=_alone(lambda broker: broker.figures.connections),
    ),
    Metric(
        name="kohort_connections_opened_total",
        kind="counter",
        meaning="Connections taken.",
        kafka="connection-creation-total",
        read=_alone(lambda broker: broker.figures.connections_opened),
    ),
    Metric(
        name="kohort_connections_refused_total",
        kind="counter",
        meaning="Connections closed at once: there were max.connections already.",
        read=_alone(lambda broker: broker.figures.connections_refused),
    ),
)

# The disk


def _logs(figure: Callable[[PartitionLog], int]) -> Read:
    """By partition while there is room for labels, then the sum of the rest."""

    def read(broker: Broker) -> Iterator[Sample]:
        room: int = broker.settings["kohort.metrics.partitions.max"]
        rest: list[int] = []
        for topic in broker.topics.all():
            for index in range(topic.partition_count):
                log = broker.topics.catalog.partition(topic.name, index)
                assert log is not None, f"{topic.name} has no partition {index}"
                if room > 0:
                    room -= 1
                    yield (topic.name, str(index)), figure(log)
                else:
                    rest.append(figure(log))
        if rest:
            yield (OTHER, OTHER), sum(rest)

    return read


def _syncs(broker: Broker) -> list[Sample]:
    return [] if broker.syncer is None else [((), broker.syncer.seconds)]


_DISK: Final = (
    Metric(
        name="kohort_sync_seconds",
        kind="histogram",
        meaning="How long a sync took. Whatever was written meanwhile shares the next one.",
        kafka="LogFlushRateAndTimeMs",
        read=_syncs,
    ),
    Metric(
        name="kohort_log_size_bytes",
        kind="gauge",
        meaning="The size of a partition's log.",
        labels=("topic", "partition"),
        kafka="Size",
        read=_logs(lambda log: log.size_bytes),
    ),
    Metric(
        name="kohort_log_start_offset",
        kind="gauge",
        meaning="The first offset of a partition that can be read.",
        labels=("topic", "partition"),
        kafka="LogStartOffset",
        read=_logs(lambda log: log.start_offset),
    ),
    Metric(
        name="kohort_log_end_offset",
        kind="gauge",
        meaning="The offset a partition's next record gets.",
        labels=("topic", "partition"),
        kafka="LogEndOffset",
        read=_logs(lambda log: log.end_offset),
    ),
)

SECTIONS: Final = {
    "Groups": _GROUPS,
    "Offsets": _OFFSETS,
    "Requests": _REQUESTS,
    "The disk": _DISK,
}

METRICS: Final = tuple(metric for section in SECTIONS.values() for metric in section)
