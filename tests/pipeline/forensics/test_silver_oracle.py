"""The silver tables of random histories equal a computation in plain Python, record by record.

The histories have interrupted rebalances and groups that become empty, are
deleted and created again, static restarts, compaction, duplicates and missing events.
"""

import json
import random
from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kohort.coordinator.events import (
    Departure,
    GroupEvent,
    InstanceReplaced,
    MemberGone,
    MemberJoined,
    RebalanceStarted,
    Trigger,
)
from kohort.coordinator.groups.classic.states import GroupState
from kohort.coordinator.record_codec import decode_record
from kohort.coordinator.records import (
    ClassicGroupMember,
    ClassicGroupMetadata,
    GroupRemoved,
    OffsetCommitted,
    OffsetRemoved,
)
from kohort.pipeline.forensics import tables
from kohort.pipeline.forensics.silver import (
    commits_table,
    generations_table,
    group_events_table,
    memberships_table,
    ownership_table,
)
from kohort.pipeline.forensics.silver.record_kinds import split_by_kind
from kohort.types import Generation, GroupId, MemberId, Millis, Offset
from kohort.wire.consumer_protocol import decode_assignment, decode_subscription
from tests.pipeline.forensics.history_bytes import (
    EVENTS,
    OFFSETS,
    History,
    Kept,
    member,
    party,
    rows,
    tuples,
)

PLACES = ("t0", "t1", "t2", "u0")


# Making histories up


class RandomGroup:
    """A random group that writes its own records and events."""

    def __init__(self, name: str, history: History, rng: random.Random) -> None:
        self.name, self.history, self.rng = name, history, rng
        self.now = 1_000
        self.generation = 0
        self.members: dict[str, str] = {}
        self.instances: dict[str, str | None] = {}
        self.is_cooperative = False
        self.count = 0
        self.event_share = rng.choice([0.0, 0.8, 1.0])

    def step(self) -> None:
        self.now += self.rng.randint(1, 500)
        what = self.rng.choices(
            (self.commit, self.remove, self.rebalance, self.restart, self.delete),
            weights=(8, 1, 4, 1, 1),
        )[0]
        what()

    def commit(self) -> None:
        where, offset = self.rng.choice(PLACES), self.rng.randint(0, 99)
        self.history.committed(self.name, where, offset, at=self.now)

    def remove(self) -> None:
        self.history.removed(self.name, self.rng.choice(PLACES), at=self.now)

    def delete(self) -> None:
        if not self.members:
            self.history.deleted(self.name, at=self.now)
            self.generation = 0

    def restart(self) -> None:
        """A static member restarts with another member id in the same generation."""
        static = [each for each in self.members if self.instances[each]]
        if static:
            old = self.rng.choice(static)
            new = self._new_id(self.instances[old])
            self.members = {new if key == old else key: got for key, got in self.members.items()}
            self._note(
                InstanceReplaced(
                    at=Millis(self.now - self.rng.randint(0, 1)),
                    group_id=GroupId(self.name),
                    old_member_id=MemberId(old),
                    party=party(new, self.instances[new]),
                    is_quiet=True,
                )
            )
            self._keep({})

    def rebalance(self) -> None:
        owned = dict(self.members)
        if self.rng.random() < 0.2:
            self.is_cooperative = not self.is_cooperative
        self._start()
        while self.rng.random() < 0.3:
            self.generation += 1
            self.now += self.rng.randint(0, 50)
            self._start()
        for each in list(self.members):
            if self.rng.random() < 0.25:
                self._leave(each)
        for _ in range(self.rng.choice([0, 0, 1, 2])):
            joined = self._new_id(self.rng.choice([None, f"i{self.count}"]))
            self.members[joined] = ""
            self._note(
                MemberJoined(
                    at=Millis(self.now),
                    group_id=GroupId(self.name),
                    party=party(joined),
                    client_reason=None,
                )
            )
        self.now += self.rng.randint(1, 200)
        self.generation += 1
        assigned = defaultdict(list)
        for place in PLACES if self.members else ():
            assigned[self.rng.choice([*self.members, "no owner"])].append(place)
        self.members = {each: " ".join(assigned[each]) for each in self.members}
        self._keep(owned)

    def _leave(self, member_id: str) -> None:
        del self.members[member_id]
        departure = self.rng.choice(list(Departure))
        self._note(
            MemberGone(
                at=Millis(self.now),
                group_id=GroupId(self.name),
                party=party(member_id),
                departure=departure,
            )
        )
        self.now += self.rng.randint(0, 20)

    def _keep(self, owned: dict[str, str]) -> None:
        self.history.formed(
            self.name,
            self.generation,
            [
                member(
                    each,
                    got,
                    instance_id=self.instances[each],
                    owned=owned.get(each, "") if self.is_cooperative else "",
                )
                for each, got in self.members.items()
            ],
            at=self.now,
            protocol="cooperative-sticky" if self.is_cooperative else "range",
        )

    def _start(self) -> None:
        self._note(
            RebalanceStarted(
                at=Millis(self.now),
                group_id=GroupId(self.name),
                generation=Generation(self.generation),
                trigger=Trigger.MEMBER_JOINED,
                initiator=None,
                client_reason=None,
                state_before=GroupState.STABLE,
                waited_for=(),
            )
        )

    def _note(self, note: GroupEvent) -> None:
        if self.rng.random() < self.event_share:
            self.history.noted(note)

    def _new_id(self, instance_id: str | None) -> str:
        self.count += 1
        new = f"{self.name}-{self.count}"
        self.instances[new] = instance_id
        return new


def made_up(seed: int, groups: int = 16, steps: int = 40) -> list[Kept]:
    """Records of two partitions, shuffled, some compacted away and some duplicated."""
    rng = random.Random(seed)  # noqa: S311 - not for secrets
    kept: list[Kept] = []
    for partition in range(2):
        history = History(partition)
        random_groups = [
            RandomGroup(f"g{partition}.{each}", history, rng) for each in range(groups // 2)
        ]
        for _ in range(steps * len(random_groups)):
            rng.choice(random_groups).step()
        # Both write to the only partition of events: one after the other.
        first = sum(each.topic == EVENTS for each in kept)
        kept += [
            replace(each, offset=Offset(each.offset + first)) if each.topic == EVENTS else each
            for each in history.kept
        ]
    kept = [each for each in kept if each.topic == EVENTS or rng.random() < 0.9]
    kept += rng.sample(kept, len(kept) // 10)
    rng.shuffle(kept)
    return kept


# Reading them plainly


@dataclass
class Snapshot:
    at: int
    generation: int | None
    members: tuple[ClassicGroupMember, ...] = ()
    is_cooperative: bool = False
    kind: str = "deleted"
    started: int | None = None
    owners: dict[tuple[str, int], ClassicGroupMember] = field(default_factory=dict)


@dataclass
class GroupEvents:
    """The events of one group."""

    starts: list[tuple[int, int]] = field(default_factory=list)
    joined: dict[str, int] = field(default_factory=dict)
    left: dict[str, tuple[int, str]] = field(default_factory=dict)


Rows = list[tuple[Any, ...]]


def plainly(kept: list[Kept]) -> tuple[Rows, Rows, Rows]:
    """Memberships, ownership and commits."""
    events = events_of(kept)
    groups: dict[tuple[int, str], list[Snapshot]] = defaultdict(list)
    moved: Rows = []
    before: dict[Any, OffsetCommitted | None] = {}
    in_order = {(each.partition, each.offset): each for each in kept if each.topic == OFFSETS}
    for (partition, offset), each in sorted(in_order.items(), key=lambda pair: pair[0]):
        record = decode_record(each.key, each.value)
        if isinstance(record, ClassicGroupMetadata | GroupRemoved):
            groups[partition, record.group_id].append(snapshot_of(record, each.at))
            continue
        assert isinstance(record, OffsetCommitted | OffsetRemoved)
        place = (record.topic, record.partition)
        now = next(iter(groups[partition, record.group_id][-1:]), Snapshot(at=0, generation=None))
        owner = now.owners.get(place)
        last = before.get((record.group_id, place))
        is_kept = isinstance(record, OffsetCommitted)
        before[record.group_id, place] = record if isinstance(record, OffsetCommitted) else None
        moved.append(
            (
                record.group_id,
                *place,
                each.at,
                offset,
                not is_kept,
                record.offset if isinstance(record, OffsetCommitted) else None,
                record.offset - last.offset
                if last and isinstance(record, OffsetCommitted)
                else None,
                owner and owner.member_id,
                now.generation,
            )
        )
    been: Rows = []
    held: Rows = []
    for (_, group_id), snapshots in groups.items():
        place_starts(snapshots, events[group_id])
        been += memberships_of(group_id, snapshots, events[group_id])
        held += ownership_of(group_id, snapshots, events[group_id])
    return been, held, moved


def snapshot_of(record: ClassicGroupMetadata | GroupRemoved, at: int) -> Snapshot:
    if isinstance(record, GroupRemoved):
        return Snapshot(at=at, generation=None)
    owned = [decode_subscription(each.subscription).owned_partitions for each in record.members]
    snapshot = Snapshot(
        at=at,
        generation=record.generation,
        members=record.members,
        is_cooperative="cooperative" in (record.protocol or "") or any(owned),
        kind="formed" if record.members else "emptied",
    )
    for each in record.members:
        for topic in decode_assignment(each.assignment).assigned_partitions:
            for partition in topic.partitions:
                snapshot.owners[topic.topic, partition] = each
    return snapshot


def events_of(kept: list[Kept]) -> dict[str, GroupEvents]:
    events: dict[str, GroupEvents] = defaultdict(GroupEvents)
    in_order = {each.offset: each for each in kept if each.topic == EVENTS}
    for _, each in sorted(in_order.items()):
        event = json.loads(each.value or b"")
        mine, at = events[event["group_id"]], event["at"]
        match event["event"]:
            case "rebalance-started":
                mine.starts.append((event["generation"], at))
            case "member-joined":
                mine.joined[event["party"]["member_id"]] = at
            case "member-gone":
                mine.left[event["party"]["member_id"]] = at, event["departure"]
            case "instance-replaced":
                mine.joined[event["party"]["member_id"]] = at
                mine.left[event["old_member_id"]] = at, "replaced"
            case other:
                raise AssertionError(other)
    return events


def place_starts(snapshots: list[Snapshot], events: GroupEvents) -> None:
    """The newest generation that is not newer than the event says."""
    for generation, at in events.starts:
        known = [
            (each.generation, each.at, index)
            for index, each in enumerate(snapshots)
            if each.generation is not None and (each.generation, each.at) <= (generation, at)
        ]
        if not known:
            continue
        index = max(known)[2]
        is_before_next = index + 1 == len(snapshots) or at <= snapshots[index + 1].at
        if snapshots[index].at <= at and is_before_next:
            started = snapshots[index].started
            snapshots[index].started = at if started is None else min(at, started)


def memberships_of(group_id: str, snapshots: list[Snapshot], events: GroupEvents) -> Rows:
    seen: dict[str, list[int]] = defaultdict(list)
    for index, snapshot in enumerate(snapshots):
        for each in snapshot.members:
            seen[each.member_id].append(index)
    found: Rows = []
    for member_id, indices in seen.items():
        cuts = [0, *(at for at, (a, b) in enumerate(pairwise(indices), 1) if b > a + 1)]
        for cut, stop in pairwise([*cuts, len(indices)]):
            first, last = indices[cut], indices[stop - 1]
            begin = snapshots[first].at
            if cut == 0:
                begin = min(begin, events.joined.get(member_id, begin))
            end, ending, is_exact = None, None, False
            if last + 1 < len(snapshots):
                mine = next(e for e in snapshots[last].members if e.member_id == member_id)
                heirs = {each.instance_id for each in snapshots[last + 1].members}
                is_replaced = mine.instance_id is not None and mine.instance_id in heirs
                end, ending = snapshots[last + 1].at, "replaced" if is_replaced else "gone"
            if stop == len(indices) and member_id in events.left:
                (end, ending), is_exact = events.left[member_id], True
            a, b = snapshots[first].generation, snapshots[last].generation
            found.append((group_id, member_id, a, b, begin, end, ending, is_exact))
    return found


def ownership_of(group_id: str, snapshots: list[Snapshot], events: GroupEvents) -> Rows:
    found: Rows = []
    for place in {each for snapshot in snapshots for each in snapshot.owners}:
        held: list[dict[str, Any]] = []
        is_held = False
        for index, snapshot in enumerate(snapshots):
            owner = snapshot.owners.get(place)
            if owner is None:
                is_held = False
                continue
            if not is_held or held[-1]["member_id"] != owner.member_id:
                held.append(
                    {"member_id": owner.member_id, "first": snapshot, "from_at": snapshot.at}
                )
            lost = lost_at(snapshots, index, owner.member_id, events)
            is_held = lost is None
            following = snapshots[index + 1].at if index + 1 < len(snapshots) else None
            held[-1] |= {"last": snapshot, "to_at": following if lost is None else lost}
        for before, each in pairwise([None, *held]):
            assert each is not None
            gap = None if before is None else max(0, each["from_at"] - before["to_at"])
            found.append(
                (
                    group_id,
                    *place,
                    each["member_id"],
                    each["first"].generation,
                    each["last"].generation,
                    each["from_at"],
                    each["to_at"],
                    gap,
                )
            )
    return found


def lost_at(
    snapshots: list[Snapshot], index: int, member_id: str, events: GroupEvents
) -> int | None:
    """When a member lost its partitions before the next generation; None if it did not."""
    here = snapshots[index]
    following = snapshots[index + 1] if index + 1 < len(snapshots) else None
    decides = following if following is not None and following.kind == "formed" else here
    times = []
    if here.started is not None and not decides.is_cooperative:
        times.append(here.started)
    if member_id in events.left:
        left = events.left[member_id][0]
        if left >= here.at and (following is None or left <= following.at):
            times.append(left)
    return min(times, default=None)


@pytest.mark.parametrize("seed", range(3))
def test_the_tables_equal_a_computation_in_plain_python(spark: SparkSession, seed: int) -> None:
    kept = made_up(seed)
    records = spark.createDataFrame(rows(kept), tables.RECORDS.ddl)

    formed = generations_table.build(records).cache()
    events = group_events_table.build(records).cache()
    been = memberships_table.build(formed, events)
    held = ownership_table.build(formed, events)
    moved = commits_table.build(split_by_kind(records), formed)

    expected_been, expected_held, expected_moved = plainly(kept)
    assert min(len(expected_been), len(expected_held), len(expected_moved)) > 100
    assert any(gap for *_, gap in expected_held)
    assert tuples(
        been, "group_id", "member_id", "from_generation", "to_generation", "from_at", "to_at",
        "ending", "is_exact",
    ) == sorted(expected_been, key=repr)  # fmt: skip
    assert tuples(
        held, "group_id", "topic", "partition", "member_id", "from_generation", "to_generation",
        "from_at", "to_at", "gap_before_ms",
    ) == sorted(expected_held, key=repr)  # fmt: skip
    assert tuples(
        moved, "group_id", "topic", "partition", "at", "log_offset", "is_removed", "committed",
        "step", "owner", "generation",
    ) == sorted(expected_moved, key=repr)  # fmt: skip
