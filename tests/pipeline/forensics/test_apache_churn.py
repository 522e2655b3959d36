"""Forensics infers from the log of Apache Kafka what Java clients did: join, leave and crash."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from pyspark.sql import SparkSession

from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.options import ForensicsOptions
from kohort.pipeline.forensics.run import run
from kohort.pipeline.forensics.store import Store
from tests.apache.cluster import Kafka
from tests.apache.driver import Driver, JavaError
from tests.pipeline.forensics.apache_log import copy_log_after
from tests.wait import wait_until

pytestmark = pytest.mark.full

TOPIC, PARTITIONS, GROUP = "orders", 4, "billing"
SESSION_MS = 10_000
"""Long enough to distinguish a crash from a leave, which takes one or two heartbeats."""

COMMITS = 5
"""Enough commits to show a commit interval."""

PATIENCE_S = 120

_LATE = {"CommitFailedException", "RebalanceInProgressException"}
"""The errors of a commit during a rebalance; the member joins at its next poll."""

Owners: TypeAlias = dict[int, str]
"""The owner of each partition."""


class Member:
    """A Java consumer that commits after each poll."""

    def __init__(self, driver: Driver, servers: str, client: str) -> None:
        self.client = client
        self.commits = 0
        self._driver = driver
        self._offset = 0
        self._name = driver.make(
            "consumer",
            {
                "bootstrap.servers": servers,
                "group.id": GROUP,
                "client.id": client,
                "enable.auto.commit": "false",
                "auto.offset.reset": "earliest",
                "partition.assignment.strategy": (
                    "org.apache.kafka.clients.consumer.RangeAssignor"
                ),
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": 200,
            },
        )
        self.ask("subscribe", topics=[TOPIC])

    def ask(self, what: str, **arguments: Any) -> Any:
        return self._driver.ask(self._name, what, **arguments)

    def assignment(self) -> set[int]:
        return {number for _, number in self.ask("assignment")}

    def work(self) -> None:
        """Poll, and commit all partitions."""
        self.ask("poll", ms=50)
        held = self.assignment()
        if not held:
            return
        self._offset += 1
        offsets = [[[TOPIC, number], [self._offset, "", None]] for number in sorted(held)]
        try:
            self.ask("commit", offsets=offsets)
        except JavaError as error:
            assert error.kind in _LATE, error
        else:
            self.commits += 1


class Crew:
    """The running members, and the assignment after each rebalance."""

    def __init__(self) -> None:
        self.members: list[Member] = []
        self.seen: list[Owners] = []

    def settle(self) -> None:
        """Poll and commit until the assignment has changed, and for a while longer."""

        def owners() -> Owners:
            for each in self.members:
                each.work()
            held = {number: m.client for m in self.members for number in m.assignment()}
            is_whole = len(held) == PARTITIONS == sum(len(m.assignment()) for m in self.members)
            has_each = set(held.values()) == {m.client for m in self.members}
            return held if is_whole and has_each and held not in self.seen[-1:] else {}

        self.seen.append(wait_until(owners, PATIENCE_S, "another assignment"))
        enough = {each.client: each.commits + COMMITS for each in self.members}

        def has_rhythm() -> bool:
            for each in self.members:
                each.work()
            return all(each.commits >= enough[each.client] for each in self.members)

        wait_until(has_rhythm, PATIENCE_S, "commits")


def live_through(kafka: Kafka) -> list[Owners]:
    """Three members join one by one; the second leaves, the third dies, the first leaves."""
    servers, crew = kafka.bootstrap_servers, Crew()
    with ExitStack() as stack:
        shore, doomed = stack.enter_context(Driver()), stack.enter_context(Driver())
        admin = shore.make("admin", {"bootstrap.servers": servers})
        shore.ask(admin, "create-topic", topic=TOPIC, partitions=PARTITIONS, settings={})
        for driver, client in ((shore, "first"), (shore, "second"), (doomed, "third")):
            crew.members.append(Member(driver, servers, client))
            crew.settle()
        crew.members.pop(1).ask("close")
        crew.settle()
        crew.members.pop(1)
        doomed.kill()
        crew.settle()
        crew.members.pop().ask("close")
    return crew.seen


def owners_in(store: Store, generation: int) -> Owners:
    held = store.read(tables.OWNERSHIP).where(
        f"from_generation <= {generation} AND to_generation >= {generation}"
    )
    return {row.partition: row.client_id for row in held.collect()}


def test_joins_a_leave_and_a_crash_are_inferred_from_the_log(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, seen = copy_log_after(live_through, tmp_path)
    target = f"{tmp_path / 'tables'}"

    run(spark, ForensicsOptions(target=target, log=log, groups=(GROUP,)))

    store = Store(spark, target)
    rebalances = store.read(tables.REBALANCES).orderBy("generation", "ended_at").collect()
    assert [(row.trigger, row.initiator.client_id, row.ending) for row in rebalances] == [
        ("member-joined", "first", "stable"),
        ("member-joined", "second", "stable"),
        ("member-joined", "third", "stable"),
        ("member-left", "second", "stable"),
        ("session-expired", "third", "stable"),
        ("member-left", "first", "empty"),
    ]
    assert not any(row.is_exact for row in rebalances)
    assert all(0.5 < row.confidence < 1 for row in rebalances)
    stable = [row.generation for row in rebalances if row.ending == "stable"]
    assert [owners_in(store, generation) for generation in stable] == seen
    assert store.read(tables.UNDECODABLE).count() == 0
