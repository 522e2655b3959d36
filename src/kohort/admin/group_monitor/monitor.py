"""Keeps a `ClusterState` up to date: one thread reads topics, another polls, a lock protects it.

    with start_monitor(cluster) as monitor:
        version = monitor.wait_for_change(0, timeout_s=5.0)
        with monitor.locked_state() as state:
            overview = state.overview(now_ms())

If the cluster is unreachable, both threads keep trying, `health` reports it, and the state stays
as it was.
"""

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self

from kohort.admin.cluster_connection import Cluster
from kohort.admin.errors import AdminError
from kohort.admin.group_monitor.cluster_state import ClusterState, PolledGroup
from kohort.admin.group_monitor.group_topics_reader import GroupTopicsReader
from kohort.admin.groups import list_groups
from kohort.admin.offsets import list_offsets
from kohort.client.errors import ConsumerError
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.events.internal_topics import KOHORT_EVENTS
from kohort.types import ErrorCode, Millis, Topic, TopicPartition, Uuid, value
from kohort.wire.api.k03_metadata import MetadataRequest

POLL_S: Final = 2.0
"""Between two polls of all groups."""

_POLL_FACTOR: Final = 10
"""Polling takes at most a tenth of the time: a cluster with many groups is polled less often."""

_RETRY_S: Final = 0.5
"""Before a failed consumer is replaced."""


@value
class MonitorHealth:
    """Whether the monitor can read the cluster."""

    is_reachable: bool
    error: str
    """The last error as one sentence; empty if there is none."""
    since_ms: Millis
    """Since when the cluster is reachable or unreachable."""
    share_read: float
    """The share of the existing records that has been read, from 0 to 1."""
    unreadable: int
    """Number of records that could not be decoded."""


def now_ms() -> Millis:
    return Millis(int(time.time() * 1000))


def start_monitor(cluster: Cluster, *, poll_s: float = POLL_S) -> "GroupMonitor":
    """Start to monitor a cluster. The caller closes the monitor first, then the cluster."""
    return GroupMonitor(cluster, poll_s)


class GroupMonitor:
    """Created by `start_monitor`."""

    def __init__(self, cluster: Cluster, poll_s: float) -> None:
        self._cluster = cluster
        self._poll_s = poll_s
        self._state = ClusterState()
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._topics_reader = GroupTopicsReader(
            cluster.bootstrap_servers, cluster.settings.client_id
        )
        self._errors = {"groups": "", "topics": ""}
        self._is_reachable = True
        self._since_ms = now_ms()
        self._share_read = 0.0
        self._threads = [
            threading.Thread(target=self._run_reader, name="kohort-monitor-reader", daemon=True),
            threading.Thread(target=self._run_poller, name="kohort-monitor-poller", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    # Readers

    @contextmanager
    def locked_state(self) -> Iterator[ClusterState]:
        """The state, locked until the `with` block ends. Take views out and leave the block."""
        with self._changed:
            yield self._state

    @property
    def version(self) -> int:
        return self._state.version

    def wait_for_change(self, seen: int, timeout_s: float) -> int:
        """Wait until the version differs from `seen`; return it.

        Returns `seen` after the timeout, or if the monitor is closed. Thread-safe.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._state.version != seen or self._closing.is_set(), timeout_s
            )
            return self._state.version

    def health(self) -> MonitorHealth:
        with self._changed:
            return MonitorHealth(
                is_reachable=self._is_reachable,
                error=self._errors["groups"] or self._errors["topics"],
                since_ms=self._since_ms,
                share_read=self._share_read,
                unreadable=self._state.unreadable,
            )

    def close(self) -> None:
        self._closing.set()
        with self._changed:
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # Thread: reads the topics

    def _run_reader(self) -> None:
        try:
            while not self._closing.is_set():
                try:
                    self._topics_reader.read(self._fold)
                    self._set_read_result("")
                except ConsumerError as error:
                    self._set_read_result(str(error))
                    self._topics_reader.drop()
                    self._closing.wait(_RETRY_S)
        except Exception as error:
            self._set_read_result(_bug_text(error))
            raise
        finally:
            self._topics_reader.drop()

    def _fold(self, records: Iterable[ConsumerRecord]) -> None:
        with self._changed:
            before = self._state.version
            for each in records:
                if each.topic == KOHORT_EVENTS:
                    self._state.fold_event(each.value)
                else:
                    self._state.fold_record(each.key, each.value, each.timestamp)
            if self._state.version != before:
                self._changed.notify_all()

    def _set_read_result(self, error: str) -> None:
        with self._changed:
            self._errors["topics"] = error
            share = self._topics_reader.share_read()
            if self._topics_reader.has_events() and not self._state.has_events:
                self._state.has_events = True
                self._state.version += 1
            if share != self._share_read:
                self._share_read = share
                self._state.version += 1
                self._changed.notify_all()

    # Thread: polls groups and log ends

    def _run_poller(self) -> None:
        while not self._closing.is_set():
            start = time.monotonic()
            try:
                self._poll_once()
                self._set_poll_result("")
            except AdminError as error:
                self._set_poll_result(str(error))
            except Exception as error:
                self._set_poll_result(_bug_text(error))
                raise
            took = time.monotonic() - start
            self._closing.wait(max(self._poll_s, _POLL_FACTOR * took))

    def _poll_once(self) -> None:
        with self._changed:
            version = self._state.version
        polled = [
            PolledGroup(
                group_id=each.group_id,
                state=each.state,
                kind=each.group_type.lower(),
                protocol_type=each.protocol_type,
            )
            for each in list_groups(self._cluster)
        ]
        names, existing = self._poll_topics()
        with self._changed:
            self._state.fold_topics(names)
            self._state.fold_groups(polled, version, now_ms())
            wanted = self._state.partitions()
            self._changed.notify_all()
        polled_ms = now_ms()
        found = list_offsets(self._cluster, wanted & existing, "latest")
        with self._changed:
            self._state.fold_ends(found, polled_ms)
            self._changed.notify_all()

    def _poll_topics(self) -> tuple[dict[Uuid, Topic], frozenset[TopicPartition]]:
        response = self._cluster.router.send_to_any(
            MetadataRequest(topics=None, allow_auto_topic_creation=False)
        )
        topics = [each for each in response.topics if each.error_code == ErrorCode.NONE]
        existing = frozenset(
            TopicPartition(each.name, partition.partition_index)
            for each in topics
            for partition in each.partitions
        )
        return {each.topic_id: each.name for each in topics}, existing

    def _set_poll_result(self, error: str) -> None:
        with self._changed:
            is_reachable = not error
            if is_reachable != self._is_reachable or error != self._errors["groups"]:
                if is_reachable != self._is_reachable:
                    self._since_ms = now_ms()
                self._is_reachable, self._errors["groups"] = is_reachable, error
                self._state.version += 1
                self._changed.notify_all()


def _bug_text(error: Exception) -> str:
    """The thread ends with this error, so the state is not updated any more."""
    return f"internal error ({error!r}), updates have stopped: a bug in Kohort, please report it"
