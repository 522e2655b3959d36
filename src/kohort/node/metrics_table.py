"""The table of all metrics: name, meaning, Kafka's name for it, and how to read its value.

The /metrics page and docs/reference/metrics.md are generated from it. Values are read on each
scrape, on the event loop.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal, TypeAlias

from kohort.coordinator.coordinator import CoordinatorState
from kohort.coordinator.events import RebalanceResult, Trigger
from kohort.coordinator.groups.classic.states import GroupState
from kohort.log.partition import PartitionLog
from kohort.node.broker import Broker
from kohort.node.metrics import OTHER, GroupMetrics, Histogram, Histograms, Metrics
from kohort.types import ErrorCode, value
from kohort.wire.api import find_api

Sample: TypeAlias = tuple[tuple[str, ...], float | Histogram]
"""The label values, and the value."""

ReadSamples: TypeAlias = Callable[[Broker], Iterable[Sample]]


@value
class Metric:
    name: str
    """Without the suffixes that Prometheus adds to the parts of a histogram."""
    kind: Literal["counter", "gauge", "histogram"]
    meaning: str
    read: ReadSamples
    labels: tuple[str, ...] = ()
    kafka: str = ""
    """Kafka's name for it, or the closest metric of Kafka."""


def _without_labels(read: Callable[[Broker], float | Histogram]) -> ReadSamples:
    return lambda broker: [((), read(broker))]


def _api_name(key: int) -> str:
    api = find_api(key)
    assert api is not None, f"API key {key} was served but is unknown"
    return api.name


# Groups


def _groups(broker: Broker) -> Iterator[Sample]:
    states = Counter(group.state for group in broker.coordinator.groups.values())
    for state in GroupState:
        yield (state,), states[state]


def _members(broker: Broker) -> Iterable[Sample]:
    """Groups without members have no label of their own, unless they had members before."""
    metrics = broker.metrics
    members: Counter[str] = Counter()
    for group_id, group in broker.coordinator.groups.items():
        if group.members:
            metrics.for_group(group_id)
        if group.members or group_id in metrics.groups:
            members[metrics.label(group_id)] += len(group.members)
    return [((label,), count) for label, count in members.items()]


def _by_group(counter: Callable[[GroupMetrics], Counter[str]]) -> ReadSamples:
    return lambda broker: [
        ((label, name), count)
        for label, metrics in broker.metrics.groups.items()
        for name, count in counter(metrics).items()
    ]


def _offsets(broker: Broker) -> int:
    return sum(
        len(partitions)
        for group in broker.coordinator.groups.values()
        for partitions in group.offsets.committed.values()
    )


def _states(broker: Broker) -> Iterator[Sample]:
    for state in CoordinatorState:
        yield (state,), int(state is broker.coordinator.phase)


def _by_trigger(of: Callable[[Metrics], Histograms[Trigger]]) -> ReadSamples:
    return lambda broker: [((trigger,), each) for trigger, each in of(broker.metrics).items()]


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
        meaning="Rebalances that ended with a stored assignment.",
        kafka="group-completed-rebalance-count",
        read=_without_labels(
            lambda broker: broker.metrics.rebalance_results[RebalanceResult.STABLE]
        ),
    ),
    Metric(
        name="kohort_group_rebalances_total",
        kind="counter",
        meaning="Rebalances that began, by group and trigger.",
        labels=("group", "trigger"),
        read=_by_group(lambda metrics: metrics.rebalances),
    ),
    Metric(
        name="kohort_rebalances_ended_total",
        kind="counter",
        meaning="Rebalances that ended, by result.",
        labels=("ending",),
        read=lambda broker: [
            ((each,), broker.metrics.rebalance_results[each]) for each in RebalanceResult
        ],
    ),
    Metric(
        name="kohort_rebalance_seconds",
        kind="histogram",
        meaning="Duration of rebalances, by trigger, whatever their result.",
        labels=("trigger",),
        read=_by_trigger(lambda metrics: metrics.rebalance_seconds),
    ),
    Metric(
        name="kohort_rebalance_join_seconds",
        kind="histogram",
        meaning="Duration of the join phase of rebalances, by trigger.",
        labels=("trigger",),
        read=_by_trigger(lambda metrics: metrics.join_seconds),
    ),
    Metric(
        name="kohort_rebalance_sync_seconds",
        kind="histogram",
        meaning="Duration from the end of the join phase to the end of the rebalance, by trigger.",
        labels=("trigger",),
        read=_by_trigger(lambda metrics: metrics.sync_seconds),
    ),
    Metric(
        name="kohort_member_departures_total",
        kind="counter",
        meaning="Members that left or were removed, by group and reason.",
        labels=("group", "departure"),
        read=_by_group(lambda metrics: metrics.departures),
    ),
    Metric(
        name="kohort_coordinator_phase",
        kind="gauge",
        meaning="1 for the current state of the coordinator, 0 for the others.",
        labels=("phase",),
        kafka="num-partitions{state}",
        read=_states,
    ),
)

# Offsets

_OFFSETS: Final = (
    Metric(
        name="kohort_offsets",
        kind="gauge",
        meaning="Committed offsets of all groups.",
        kafka="NumOffsets",
        read=_without_labels(_offsets),
    ),
    Metric(
        name="kohort_offset_commits_total",
        kind="counter",
        meaning="Committed offsets: one per partition of every stored commit.",
        kafka="offset-commit-count",
        read=_without_labels(lambda broker: broker.metrics.offset_commits),
    ),
    Metric(
        name="kohort_offset_expirations_total",
        kind="counter",
        meaning="Offsets removed because their retention time expired.",
        kafka="offset-expiration-count",
        read=_without_labels(lambda broker: broker.metrics.offset_expirations),
    ),
    Metric(
        name="kohort_offset_deletions_total",
        kind="counter",
        meaning="Offsets deleted by request, with their group or with their topic.",
        kafka="offset-deletion-count",
        read=_without_labels(lambda broker: broker.metrics.offset_deletions),
    ),
    Metric(
        name="kohort_commits_refused_total",
        kind="counter",
        meaning="Commit requests refused as a whole, by group and error.",
        labels=("group", "error"),
        read=_by_group(lambda metrics: metrics.refused_commits),
    ),
    Metric(
        name="kohort_records_not_kept_total",
        kind="counter",
        meaning="Failed appends of the coordinator's records, by error.",
        labels=("error",),
        read=lambda broker: [
            ((e.name,), count) for e, count in broker.metrics.failed_appends.items()
        ],
    ),
    Metric(
        name="kohort_partition_load_seconds",
        kind="gauge",
        meaning="How long loading a partition of __consumer_offsets took at start, including the "
        "requests handled meanwhile.",
        labels=("partition",),
        kafka="partition-load-time-max, -avg",
        read=lambda broker: [((str(p),), took) for p, took in broker.metrics.load_seconds.items()],
    ),
    Metric(
        name="kohort_records_skipped_total",
        kind="counter",
        meaning="Records of __consumer_offsets that could not be decoded at start.",
        read=_without_labels(lambda broker: broker.skipped_records),
    ),
    Metric(
        name="kohort_records_unknown",
        kind="gauge",
        meaning="Records of __consumer_offsets of unimplemented types; they are kept.",
        read=_without_labels(lambda broker: len(broker.coordinator.unknown_records)),
    ),
    Metric(
        name="kohort_events_lost_total",
        kind="counter",
        meaning="Events that could not be written to __kohort_events.",
        read=_without_labels(lambda broker: broker.events.lost_count),
    ),
)

# Requests


def _latencies(broker: Broker) -> Iterator[Sample]:
    for key, histogram in enumerate(broker.metrics.requests):
        if any(histogram.counts):
            yield (_api_name(key),), histogram


def _errors(broker: Broker) -> Iterator[Sample]:
    for (key, code), count in broker.metrics.errors.items():
        yield (_api_name(key), ErrorCode(code).name), count


def _parked(broker: Broker) -> Iterator[Sample]:
    yield ("group",), broker.groups.open_tickets
    yield ("fetch",), len(broker.purgatory)


_REQUESTS: Final = (
    Metric(
        name="kohort_request_seconds",
        kind="histogram",
        meaning="From receiving a request to writing its response, by API. Includes the time for "
        "which a join or a fetch is parked, and the sync of a write.",
        labels=("api",),
        kafka="RequestsPerSec, TotalTimeMs",
        read=_latencies,
    ),
    Metric(
        name="kohort_request_errors_total",
        kind="counter",
        meaning="Responses with an error, by API and by the first error in the response.",
        labels=("api", "error"),
        kafka="ErrorsPerSec",
        read=_errors,
    ),
    Metric(
        name="kohort_requests_parked",
        kind="gauge",
        meaning="Parked requests: waiting for a group or for the sync of its records, or for "
        "records to fetch.",
        labels=("for",),
        kafka="PurgatorySize",
        read=_parked,
    ),
    Metric(
        name="kohort_bytes_in_total",
        kind="counter",
        meaning="Bytes received from clients.",
        kafka="incoming-byte-total",
        read=_without_labels(lambda broker: broker.metrics.bytes_in),
    ),
    Metric(
        name="kohort_bytes_out_total",
        kind="counter",
        meaning="Bytes of responses written to clients.",
        kafka="outgoing-byte-total",
        read=_without_labels(lambda broker: broker.metrics.bytes_out),
    ),
    Metric(
        name="kohort_connections",
        kind="gauge",
        meaning="Open connections.",
        kafka="connection-count",
        read=_without_labels(lambda broker: broker.metrics.connections),
    ),
    Metric(
        name="kohort_connections_opened_total",
        kind="counter",
        meaning="Accepted connections.",
        kafka="connection-creation-total",
        read=_without_labels(lambda broker: broker.metrics.connections_opened),
    ),
    Metric(
        name="kohort_connections_refused_total",
        kind="counter",
        meaning="Connections closed at once because max.connections were open.",
        read=_without_labels(lambda broker: broker.metrics.connections_refused),
    ),
    Metric(
        name="kohort_internal_errors_total",
        kind="counter",
        meaning="Bugs that failed one request and its connection, or one timer; see the log.",
        read=_without_labels(lambda broker: broker.metrics.internal_errors),
    ),
    Metric(
        name="kohort_loop_suspensions_total",
        kind="counter",
        meaning="How often the event loop did not run for more than a second: the process was "
        "stopped, its virtual machine was paused, or one request took as long.",
        read=_without_labels(lambda broker: broker.metrics.suspensions),
    ),
    Metric(
        name="kohort_loop_suspended_seconds_total",
        kind="counter",
        meaning="How long it did not run then. Deadlines of groups were extended by it.",
        read=_without_labels(lambda broker: broker.metrics.suspended_seconds),
    ),
)

# Disk


def _logs(size: Callable[[PartitionLog], int]) -> ReadSamples:
    """One sample per partition up to the maximum, and one for the sum of the rest."""

    def read(broker: Broker) -> Iterator[Sample]:
        left: int = broker.settings["kohort.metrics.partitions.max"]
        rest: list[int] = []
        for topic in broker.topics.all():
            for index in range(topic.partition_count):
                log = broker.topics.catalog.partition(topic.name, index)
                assert log is not None, f"{topic.name} has no partition {index}"
                if left > 0:
                    left -= 1
                    yield (topic.name, str(index)), size(log)
                else:
                    rest.append(size(log))
        if rest:
            yield (OTHER, OTHER), sum(rest)

    return read


def _syncs(broker: Broker) -> list[Sample]:
    return [] if broker.syncer is None else [((), broker.syncer.seconds)]


_DISK: Final = (
    Metric(
        name="kohort_sync_seconds",
        kind="histogram",
        meaning="Duration of an fsync. Everything written meanwhile shares the next one.",
        kafka="LogFlushRateAndTimeMs",
        read=_syncs,
    ),
    Metric(
        name="kohort_log_size_bytes",
        kind="gauge",
        meaning="Size of a partition's log.",
        labels=("topic", "partition"),
        kafka="Size",
        read=_logs(lambda log: log.size_bytes),
    ),
    Metric(
        name="kohort_log_start_offset",
        kind="gauge",
        meaning="First readable offset of a partition.",
        labels=("topic", "partition"),
        kafka="LogStartOffset",
        read=_logs(lambda log: log.start_offset),
    ),
    Metric(
        name="kohort_log_end_offset",
        kind="gauge",
        meaning="Offset of the next record of a partition.",
        labels=("topic", "partition"),
        kafka="LogEndOffset",
        read=_logs(lambda log: log.end_offset),
    ),
)

SECTIONS: Final = {
    "Groups": _GROUPS,
    "Offsets": _OFFSETS,
    "Requests": _REQUESTS,
    "Disk": _DISK,
}

METRICS: Final = tuple(metric for section in SECTIONS.values() for metric in section)
