"""The gold tables of small random histories equal a computation in plain Python.

Moves, the fewest possible moves, gaps and lag are computed row by row, and by trying every
possible assignment.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations, product
from typing import Any, TypeAlias

from pyspark.sql import SparkSession

from kohort.pipeline.forensics.gold import lag_table
from tests.pipeline.forensics.row_histories import (
    C,
    D,
    G,
    L,
    M,
    Place,
    Row,
    X,
    build_silver,
    listed,
    places,
)
from tests.pipeline.forensics.test_gold_rebalances import build

SEEDS = range(12)
PLACES = ("t0", "t1", "t2", "t3")
Figures: TypeAlias = tuple[int, int, int, int | None]


def history(dice: random.Random, topic: str) -> list[Row]:
    """Members join and leave, assignments are random, groups are deleted."""
    rows: list[Row] = []
    at, number, offset = 0, 0, 100
    here = [place.replace("t", topic) for place in PLACES]
    protocol = dice.choice(["cooperative-sticky", "range"])
    for _ in range(dice.randint(4, 14)):
        at += dice.randint(2, 50)
        number += 1
        fate = dice.random()
        if fate < 0.1:
            number = 0
            rows.append(D(at))
        elif fate < 0.2:
            rows.append(G(at, number))
        else:
            names = sorted(dice.sample("abcd", dice.randint(1, 3)))
            shares: dict[str, list[str]] = {name: [] for name in names}
            for place in here:
                owner = dice.choice([*names, *names, None])
                if owner is not None:
                    shares[owner].append(place)
            members = [M(name, " ".join(got), topics=topic) for name, got in shares.items()]
            rows.append(G(at, number, *members, protocol=protocol))
        for _ in range(dice.randint(0, 5)):
            at += dice.randint(1, 9)
            offset += dice.randint(-10, 60)
            place = dice.choice(here)
            deeds: list[Row] = [C(at, place, offset), X(at, place), L(at, place, offset + 20)]
            rows.append(dice.choices(deeds, weights=[6, 1, 3])[0])
    return rows


def read_rebalances(rows: Sequence[Row]) -> Iterator[Figures]:
    """Generation, moved, moved needlessly and ownerless, computed one by one."""
    last: dict[Place, str] = {}
    lost_at: dict[Place, float] = {}
    owners: dict[Place, str] = {}
    heard: dict[str, float] = {}
    is_peopled = False
    for row in rows:
        if isinstance(row, C):
            heard |= {owners[place]: row.at for place in places(row.of) if place in owners}
        elif isinstance(row, G | D):
            now = {place: m.id for m in row.members for place in places(m.got)}
            gap = sum(
                row.at - lost_at[place]
                for place in now
                if place in lost_at and now[place] != owners.get(place) and place not in owners
            )
            if isinstance(row, G) and (row.members or is_peopled):
                before = {place: last[place] for place in now if place in last}
                moved = sum(now[place] != owner for place, owner in before.items())
                fewest = fewest_moves(before, now, [m.id for m in row.members])
                ownerless: float | None = 0
                if row.members and is_peopled:
                    ownerless = gap
                    if row.protocol == "range":
                        idle = [
                            row.at - heard[owner]
                            for owner in owners.values()
                            if owner in heard and owner in {m.id for m in row.members}
                        ]
                        ownerless = gap + sum(idle) if idle else None
                yield (
                    row.number,
                    moved,
                    moved - fewest,
                    None if ownerless is None else round(ownerless * 1000),
                )
            lost_at |= {place: row.at for place, who in owners.items() if now.get(place) != who}
            last = {**last, **now} if row.members else {}
            owners, heard, is_peopled = now, {}, bool(row.members)


def fewest_moves(before: dict[Place, str], now: dict[Place, str], members: list[str]) -> int:
    """The fewest moves of all assignments with the same shares, by brute force."""
    shares = [Counter(now.values())[member] for member in members]
    allowed = {tuple(sorted(zip(members, order, strict=True))) for order in permutations(shares)}
    best = len(now)
    for owners in product(members, repeat=len(now)):
        counts = Counter(owners)
        if tuple(sorted((member, counts[member]) for member in members)) in allowed:
            tried = dict(zip(now, owners, strict=True))
            best = min(best, sum(tried[place] != owner for place, owner in before.items()))
    return best


def read_lag(rows: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
    """Partition, time, committed offset, log end and lag, by time, readings first."""
    committed: dict[Place, int] = {}
    end: dict[Place, int] = {}
    for row in sorted(rows, key=lambda row: (row.at, not isinstance(row, L))):
        if not isinstance(row, C | X | L):
            continue
        for place in places(row.of):
            match row:
                case C():
                    committed[place] = row.offset
                case L():
                    end[place] = row.end
                    if place not in committed:
                        continue
                case X():
                    committed.pop(place, None)
            held, log_end = committed.get(place), end.get(place)
            behind = None if held is None or log_end is None else max(log_end - held, 0)
            yield (*place, float(row.at), isinstance(row, L), held, log_end, behind)


def test_the_tables_equal_a_computation_in_plain_python(spark: SparkSession) -> None:
    stories = {
        f"s{seed}": history(random.Random(seed), chr(97 + seed))  # noqa: S311  # dice
        for seed in SEEDS
    }
    told = build_silver(spark, stories, in_order=False)

    rebalances = listed(build(told).orderBy("group_id", "ended_at"))
    lags = listed(lag_table.build(commits=told.commits, ends=told.ends))

    for name, rows in stories.items():
        figures = [
            (r["generation"], r["moved"], r["moved_needlessly"], r["ownerless_partition_ms"])
            for r in rebalances
            if r["group_id"] == name
        ]
        assert figures == list(read_rebalances(rows)), name
        measured = [
            (
                *(r["topic"], r["partition"], r["at"], r["log_offset"] is None),
                *(r["committed"], r["log_end"], r["lag_records"]),
            )
            for r in lags
            if r["group_id"] == name
        ]
        assert sorted(measured, key=repr) == sorted(read_lag(rows), key=repr), name
