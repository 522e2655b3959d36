"""Waits for groups of a node, with real consumers."""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kohort.admin.group_monitor.views import ObservedRebalance
from kohort.conditions.group_snapshot import GroupSnapshot
from kohort.node.control.errors import ControlError
from kohort.testing.waits import GroupCommit, Waits, WaitTimeout
from kohort.types import Offset
from tests.cli.cluster_setup import commit, partition_of, write
from tests.testing.wait_setup import (
    PARTITIONS,
    WaitNode,
    consume,
    consume_with_librdkafka,
    consumers,
)

LIBRARIES = pytest.mark.parametrize("run", [consume, consume_with_librdkafka])
ASSIGNORS = pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])

LONG_S = 30.0
"""Longer than any test needs: a wait that is answered too late fails."""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[WaitNode]:
    started = WaitNode(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def waits(node: WaitNode) -> Waits:
    return Waits(node.broker)


@LIBRARIES
@ASSIGNORS
def test_wait_returns_when_all_members_have_all_partitions(
    node: WaitNode, waits: Waits, run: Callable[..., None], assignor: str
) -> None:
    with consumers(node.bootstrap_servers, "a", "b", "c", run=run, assignor=assignor):
        found = waits.wait_for("billing", members=3, stable=True, timeout=LONG_S)

    assert found.assigned == PARTITIONS
    assert sorted(each.party.client_id for each in found.members) == ["a", "b", "c"]
    assert all(each.assignment for each in found.members)
    assert (found.protocol, found.unsynced, found.revoking) == (assignor, (), ())


@ASSIGNORS
def test_member_that_joins_later_is_waited_for_until_it_has_partitions(
    node: WaitNode, waits: Waits, assignor: str
) -> None:
    with consumers(node.bootstrap_servers, "a", "b", assignor=assignor):
        before = waits.wait_for("billing", members=2, stable=True, timeout=LONG_S)
        with consumers(node.bootstrap_servers, "c", assignor=assignor):
            after = waits.wait_for("billing", members=3, stable=True, timeout=LONG_S)

    assert before.assigned == after.assigned == PARTITIONS
    assert after.generation is not None
    assert before.generation is not None
    assert after.generation > before.generation


def test_wait_for_a_group_that_does_not_exist_yet(node: WaitNode, waits: Waits) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(waits.wait_for, "billing", members=1, stable=True, timeout=LONG_S)
        with consumers(node.bootstrap_servers, "a"):
            assert waiting.result().assigned == PARTITIONS


def test_condition_that_holds_already_is_answered(node: WaitNode, waits: Waits) -> None:
    with consumers(node.bootstrap_servers, "a"):
        first = waits.wait_for("billing", stable=True, timeout=LONG_S)
        again = waits.wait_for("billing", stable=True, timeout=0)

    assert first.generation == again.generation


def test_lag_is_zero_when_everything_is_committed(node: WaitNode, waits: Waits) -> None:
    records = {("orders", 0): 5, ("orders", 3): 2}
    write(node.bootstrap_servers, records)

    with consumers(node.bootstrap_servers, "a", "b"):
        found = waits.wait_for("billing", lag=0, stable=True, timeout=LONG_S)

    committed = found.committed()
    assert {where: committed[partition_of(*where)] for where in records} == records


def test_lag_of_other_topics_is_ignored_with_topics(node: WaitNode, waits: Waits) -> None:
    write(node.bootstrap_servers, {("orders", 0): 1})
    commit(node.bootstrap_servers, "billing", {("orders", 1): 0})

    with pytest.raises(WaitTimeout, match="lag is 1, at most 0 was expected: orders-0 1"):
        waits.wait_for("billing", lag=0, timeout=0)
    with pytest.raises(WaitTimeout, match="topic missing does not exist"):
        waits.wait_for("billing", lag=0, topics=["missing"], timeout=0)
    assert waits.wait_for("billing", lag=1, topics=["orders"], timeout=0).lag == 1


def test_left_group_is_empty_and_keeps_its_offsets(node: WaitNode, waits: Waits) -> None:
    write(node.bootstrap_servers, {("orders", 0): 1})
    with consumers(node.bootstrap_servers, "a"):
        waits.wait_for_commit("billing", topic="orders", partition=0, offset=1, timeout=LONG_S)

    found = waits.wait_for("billing", state="empty", members=0, timeout=LONG_S)

    assert found.committed()[partition_of("orders", 0)] == 1


# Timeouts


def test_timeout_says_what_is_missing_and_what_happened(node: WaitNode, waits: Waits) -> None:
    write(node.bootstrap_servers, {("orders", 0): 1})
    with consumers(node.bootstrap_servers, "a"):
        waits.wait_for("billing", stable=True, lag=0, timeout=LONG_S)
        write(node.bootstrap_servers, {("orders", 1): 1})

        with pytest.raises(WaitTimeout) as caught:
            waits.wait_for("billing", members=3, state="Empty", assigned=9, timeout=0.2)

    text = re.sub(r"\d{4}-\S+Z", "TIME", str(caught.value))
    text = re.sub(r"[\d.]+ m?s\b", "DURATION", text)
    assert text == (
        "not within DURATION: group billing has 1 member, 3 were expected; "
        "state is Stable since DURATION, Empty was expected; "
        "4 partitions are assigned, 9 were expected\n"
        "last events of group billing:\n"
        "  TIME  billing  member-id-issued  a at 127.0.0.1\n"
        "  TIME  billing  member-joined  a at 127.0.0.1\n"
        "  TIME  billing  rebalance-started  member-joined by a at 127.0.0.1\n"
        "  TIME  billing  state-changed  Empty -> PreparingRebalance\n"
        "  TIME  billing  state-changed  PreparingRebalance -> CompletingRebalance\n"
        "  TIME  billing  state-changed  CompletingRebalance -> Stable\n"
        "  TIME  billing  rebalance-ended  stable: generation 0 -> 1, 1 member, took DURATION "
        "(joins DURATION), member-joined by a at 127.0.0.1"
    )
    assert len(caught.value.missing) == 3
    assert caught.value.group.state == "Stable"


def test_timeout_without_the_group_says_so(waits: Waits) -> None:
    with pytest.raises(WaitTimeout) as caught:
        waits.wait_for("billing", members=1, timeout=0.01)

    assert str(caught.value) == "not within 10 ms: group billing does not exist"


def test_refusal_of_the_node_has_structured_details(node: WaitNode) -> None:
    with pytest.raises(ControlError) as caught:
        node.broker.request("wait", {"group": "billing", "timeout": "0"})

    details = caught.value.details
    assert details["missing"] == ["group billing does not exist"]
    assert (details["group"]["state"], details["events"]) == ("Dead", [])


def test_invalid_arguments_are_refused(node: WaitNode, waits: Waits) -> None:
    with pytest.raises(ValueError, match="members=-1 is invalid"):
        waits.wait_for("billing", members=-1)
    with pytest.raises(ControlError, match="members='three' is invalid: not a whole number"):
        node.broker.request("wait", {"group": "billing", "members": "three"})
    with pytest.raises(ControlError, match="wait-commit needs a group"):
        node.broker.request("wait-commit", {})


# Rebalances


def test_next_rebalance_has_cause_and_members(node: WaitNode, waits: Waits) -> None:
    with consumers(node.bootstrap_servers, "a"), ThreadPoolExecutor(1) as pool:
        stable = waits.wait_for("billing", stable=True, timeout=LONG_S)
        waiting = pool.submit(
            waits.wait_for_rebalance, "billing", after=stable.generation, timeout=LONG_S
        )
        with consumers(node.bootstrap_servers, "b"):
            ended: ObservedRebalance = waiting.result()

    assert stable.generation is not None
    assert (ended.generation_before, ended.generation) == (1, 2)
    assert (ended.trigger, ended.ending) == ("member-joined", "stable")
    assert ended.initiator is not None
    assert ended.initiator.client_id == "b"
    assert sorted(each.party.client_id for each in ended.participants) == ["a", "b"]


def test_past_rebalance_after_a_generation_is_answered_at_once(
    node: WaitNode, waits: Waits
) -> None:
    with consumers(node.bootstrap_servers, "a"):
        waits.wait_for("billing", stable=True, timeout=LONG_S)
    waits.wait_for("billing", state="Empty", timeout=LONG_S)

    first = waits.wait_for_rebalance("billing", after=0, timeout=0)
    second = waits.wait_for_rebalance("billing", after=1, timeout=0)

    assert (first.ending, second.ending) == ("stable", "empty")
    with pytest.raises(WaitTimeout, match="no rebalance of group billing after generation 2"):
        waits.wait_for_rebalance("billing", timeout=0.01)


def test_rebalance_needs_recorded_events(tmp_path: Path) -> None:
    node = WaitNode(tmp_path, **{"kohort.events.enable": False})
    try:
        with pytest.raises(ControlError, match=r"start it with kohort\.events\.enable=true"):
            node.broker.request("wait-rebalance", {"group": "billing"})
    finally:
        node.stop()


# Commits


def test_commit_is_waited_for_until_its_offset_is_reached(node: WaitNode, waits: Waits) -> None:
    commit(node.bootstrap_servers, "billing", {("orders", 0): 3})
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(
            waits.wait_for_commit, "billing", topic="orders", partition=0, offset=5, timeout=LONG_S
        )
        commit(node.bootstrap_servers, "billing", {("orders", 0): 4, ("orders", 1): 9})
        commit(node.bootstrap_servers, "billing", {("orders", 0): 6})

        found: GroupCommit = waiting.result()

    assert found.offsets == {partition_of("orders", 0): Offset(6)}
    assert waits.wait_for_commit(
        "billing", topic="orders", partition=0, offset=6, timeout=0
    ).offsets == {partition_of("orders", 0): 6}


def test_next_commit_may_be_of_the_same_offset(node: WaitNode, waits: Waits) -> None:
    same = {("orders", 0): 3}
    commit(node.bootstrap_servers, "billing", same)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(waits.wait_for_commit, "billing", topic="orders", timeout=LONG_S)
        while not waiting.done():
            commit(node.bootstrap_servers, "billing", same)

    assert waiting.result().offsets == {partition_of("orders", 0): 3}


def test_earlier_commit_is_not_the_next_one(node: WaitNode, waits: Waits) -> None:
    commit(node.bootstrap_servers, "billing", {("orders", 0): 3})

    with pytest.raises(WaitTimeout, match="group billing has not committed orders since the call"):
        waits.wait_for_commit("billing", topic="orders", timeout=0.05)
    with pytest.raises(WaitTimeout, match="has committed offset 3 of orders-0, at least 5 was"):
        waits.wait_for_commit("billing", topic="orders", partition=0, offset=5, timeout=0)


# Many waiters


def test_many_threads_wait_for_the_same_group(node: WaitNode, waits: Waits) -> None:
    found: list[GroupSnapshot] = []

    def wait() -> None:
        found.append(waits.wait_for("billing", members=2, stable=True, timeout=LONG_S))

    threads = [threading.Thread(target=wait) for _ in range(30)]
    for thread in threads:
        thread.start()
    with consumers(node.bootstrap_servers, "a", "b"):
        for thread in threads:
            thread.join()

    assert [each.assigned for each in found] == [PARTITIONS] * 30


def test_a_timeout_in_an_event_loop_says_that_the_loop_did_not_run(waits: Waits) -> None:
    async def wait() -> None:
        waits.wait_for("billing", members=1, timeout=0.01)

    with pytest.raises(WaitTimeout) as in_a_loop:
        asyncio.run(wait())
    with pytest.raises(WaitTimeout) as without_a_loop:
        waits.wait_for("billing", members=1, timeout=0.01)

    assert "use `await asyncio.to_thread(cluster.wait_for, ...)`" in str(in_a_loop.value)
    assert "asyncio" not in str(without_a_loop.value)
