"""Keeps a picture up to date: one thread reads topics, another asks, and a lock is between them and
those who look. There is no rule here.

    with follow(cluster) as following:
        seen = following.wait_for_change(0, timeout_s=5.0)
        with following.look() as picture:
            overview = picture.overview(now_ms())

When the cluster goes away both threads go on trying, and `health` says so; what was known stays.
"""

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self

from kohort.admin.cluster import Cluster
from kohort.admin.errors import AdminError
from kohort.admin.groups import list_groups
from kohort.admin.offsets import ends
from kohort.admin.picture.picture import ListedState, Picture
from kohort.admin.picture.tailing import EVENTS, Tail
from kohort.client.errors import ConsumerError
from kohort.client.fetching.records import ConsumerRecord
from kohort.client.topic_partition import TopicPartition
from kohort.types import ErrorCode, Millis, Topic, Uuid, value
from kohort.wire.api.k03_metadata import MetadataRequest

POLL_S: Final = 2.0
"""Between two questions about all groups."""

_SHARE: Final = 10
"""Asking may take a tenth of the time: a cluster with very many groups is asked less often."""

_PAUSE_S: Final = 0.5
"""Before a consumer that failed is replaced."""


@value
class Health:
    """How well the picture is kept."""

    is_reachable: bool
    trouble: str
    """What went wrong last, in one sentence; empty while nothing is wrong."""
    since_ms: Millis
    """Since when the cluster is, or is not, within reach."""
    share_read: float
    """How much of the past has been read, from 0 to 1."""
    unreadable: int
    """Records that made no sense."""


def now_ms() -> Millis:
    return Millis(int(time.time() * 1000))


def follow(cluster: Cluster, *, poll_s: float = POLL_S) -> "Following":
    """Begin to follow a cluster. It stays the caller's, who closes it after the following."""
    return Following(cluster, poll_s)


class Following:
    """Made by `follow`."""

    def __init__(self, cluster: Cluster, poll_s: float) -> None:
        self._cluster = cluster
        self._poll_s = poll_s
        self._picture = Picture()
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self._tail = Tail(cluster.bootstrap_servers, cluster.settings.client_id)
        self._troubles = {"groups": "", "topics": ""}
        self._is_reachable = True
        self._since_ms = now_ms()
        self._share_read = 0.0
        self._threads = [
            threading.Thread(target=self._read, name="kohort-picture-reading", daemon=True),
            threading.Thread(target=self._ask, name="kohort-picture-asking", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    # For those who look

    @contextmanager
    def look(self) -> Iterator[Picture]:
        """The picture, which stands still meanwhile: take out values, and leave."""
        with self._changed:
            yield self._picture

    @property
    def version(self) -> int:
        return self._picture.version

    def wait_for_change(self, seen: int, timeout_s: float) -> int:
        """The picture's version as soon as it is not `seen`; `seen` if the time is up, or at the
        end."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._picture.version != seen or self._ending.is_set(), timeout_s
            )
            return self._picture.version

    def health(self) -> Health:
        with self._changed:
            return Health(
                is_reachable=self._is_reachable,
                trouble=self._troubles["groups"] or self._troubles["topics"],
                since_ms=self._since_ms,
                share_read=self._share_read,
                unreadable=self._picture.unreadable,
            )

    def close(self) -> None:
        self._ending.set()
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

    # The thread that reads

    def _read(self) -> None:
        try:
            while not self._ending.is_set():
                try:
                    self._tail.read(self._take)
                    self._note_read("")
                except ConsumerError as error:
                    self._note_read(str(error))
                    self._tail.drop()
                    self._ending.wait(_PAUSE_S)
        except Exception as error:
            self._note_read(_broken(error))
            raise
        finally:
            self._tail.drop()

    def _take(self, records: Iterable[ConsumerRecord]) -> None:
        with self._changed:
            before = self._picture.version
            for each in records:
                if each.topic == EVENTS:
                    self._picture.fold_event(each.value)
                else:
                    self._picture.fold_record(each.key, each.value, each.timestamp)
            if self._picture.version != before:
                self._changed.notify_all()

    def _note_read(self, trouble: str) -> None:
        with self._changed:
            self._troubles["topics"] = trouble
            share = self._tail.share_read()
            if self._tail.has_events() and not self._picture.has_events:
                self._picture.has_events = True
                self._picture.version += 1
            if share != self._share_read:
                self._share_read = share
                self._picture.version += 1
                self._changed.notify_all()

    # The thread that asks

    def _ask(self) -> None:
        while not self._ending.is_set():
            began = time.monotonic()
            try:
                self._ask_once()
                self._note_asked("")
            except AdminError as error:
                self._note_asked(str(error))
            except Exception as error:
                self._note_asked(_broken(error))
                raise
            took = time.monotonic() - began
            self._ending.wait(max(self._poll_s, _SHARE * took))

    def _ask_once(self) -> None:
        with self._changed:
            asked_at = self._picture.version
        listed = [
            ListedState(
                group_id=each.group_id,
                state=each.state,
                kind=each.group_type.lower(),
                protocol_type=each.protocol_type,
            )
            for each in list_groups(self._cluster)
        ]
        names, there = self._ask_topics()
        with self._changed:
            self._picture.fold_topics(names)
            self._picture.fold_groups(listed, asked_at, now_ms())
            wanted = self._picture.partitions()
            self._changed.notify_all()
        # An answer about a topic that is gone would be long in coming.
        looked_ms = now_ms()
        found = ends(self._cluster, wanted & there, "latest")
        with self._changed:
            self._picture.fold_ends(found, looked_ms)
            self._changed.notify_all()

    def _ask_topics(self) -> tuple[dict[Uuid, Topic], frozenset[TopicPartition]]:
        answer = self._cluster.caller.ask_any(
            MetadataRequest(topics=None, allow_auto_topic_creation=False)
        )
        told = [each for each in answer.topics if each.error_code == ErrorCode.NONE]
        there = frozenset(
            TopicPartition(each.name, partition.partition_index)
            for each in told
            for partition in each.partitions
        )
        return {each.topic_id: each.name for each in told}, there

    def _note_asked(self, trouble: str) -> None:
        with self._changed:
            is_reachable = not trouble
            if is_reachable != self._is_reachable or trouble != self._troubles["groups"]:
                if is_reachable != self._is_reachable:
                    self._since_ms = now_ms()
                self._is_reachable, self._troubles["groups"] = is_reachable, trouble
                self._picture.version += 1
                self._changed.notify_all()


def _broken(error: Exception) -> str:
    """The thread ends by it, which whoever looks must know: nothing is new from now on."""
    return f"the picture stands still because of an error of our own: {error!r}"
