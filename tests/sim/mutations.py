"""Mutations: deliberate bugs, each of which some seed must catch.

    python -m tests.sim.mutations          prints which seed catches which mutation
    python -m tests.sim.mutations --doc    regenerates the table in docs/contributing/testing.md

A mutation replaces one function by a wrong one while it is applied.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from kohort.sim.plan import CommitMode, EventKind, PlannedEvent, SimulationPlan
from kohort.sim.plan_file import read_plan
from kohort.sim.plan_generator import draw_plan
from kohort.sim.world import RunResult, World
from kohort.types import value
from tests.sim import mutants
from tests.sim.mutants import Patch

PAST_FAILURES = sorted((Path(__file__).parent / "seeds").glob("*.seed"))

SEEDS_MAX = 150
"""Seeds within which a mutation must be caught. `make soak` runs over a hundred times as many."""


def _as_drawn(plan: SimulationPlan) -> SimulationPlan:
    return plan


def _power_cuts(plan: SimulationPlan) -> SimulationPlan:
    """Repeated power failures, with small segments."""
    return replace(
        plan,
        durability="fsync",
        segment_bytes=700,
        housekeeping_ms=700,
        faulty_ms=12_000,
        events=_repeated(EventKind.NODE_POWER, ("",) * 8, amount=10),
    )


def _unsynced_cuts(plan: SimulationPlan) -> SimulationPlan:
    """Power failures without syncs, so that whole segments are torn."""
    return replace(_power_cuts(plan), durability="os", housekeeping_ms=10_000)


def _torn_batches(plan: SimulationPlan) -> SimulationPlan:
    """Batches larger than a sector, often half written."""
    return replace(
        _power_cuts(plan),
        segment_bytes=0,
        sync_ms=(5, 60),
        producers=tuple(replace(each, records_max=100, interval_ms=200) for each in plan.producers),
        members=tuple(replace(each, batch_max=500, record_ms=0.01) for each in plan.members),
    )


def _full_disks(plan: SimulationPlan) -> SimulationPlan:
    full = _repeated(EventKind.DISK_FULL, ("",) * 8, amount=500)
    return replace(plan, faulty_ms=12_000, events=full)


def _failing_syncs(plan: SimulationPlan) -> SimulationPlan:
    failing = _repeated(EventKind.SYNC_FAILS, ("",) * 8, amount=0)
    return replace(plan, durability="fsync", faulty_ms=12_000, events=failing)


def _stalled_static_members(plan: SimulationPlan) -> SimulationPlan:
    """Static members are stalled while their group rebalances."""
    members = tuple(
        replace(
            each,
            instance_id=f"i-{each.name}",
            session_ms=10_000,
            heartbeat_ms=500,
            max_poll_ms=2_000,
            batch_max=2,
            record_ms=5,
            start_ms=0,
        )
        for each in plan.members
    )
    names = [each.name for each in members] * 8
    stalls = _repeated(EventKind.STALL, names[:8], amount=3_500)
    rejoins = tuple(
        replace(
            each, number=each.number + 8, kind=EventKind.REJOIN, target=name, at_ms=each.at_ms + 50
        )
        for each, name in zip(stalls, names[1:], strict=False)
    )
    events = tuple(sorted((*stalls, *rejoins), key=lambda each: each.at_ms))
    return replace(plan, members=members, faulty_ms=12_000, events=events)


def _small_segments(plan: SimulationPlan) -> SimulationPlan:
    """Small segments and many commits, for compaction."""
    members = tuple(replace(each, commits=CommitMode.SYNC, batch_max=2) for each in plan.members)
    return replace(plan, segment_bytes=700, housekeeping_ms=700, faulty_ms=25_000, members=members)


def _expired_members(plan: SimulationPlan) -> SimulationPlan:
    """The session of each member times out, and the member comes back."""
    members = tuple(
        replace(each, session_ms=1_000, heartbeat_ms=250, max_poll_ms=20_000)
        for each in plan.members
    )
    names = [each.name for each in members] * 4
    stalls = _repeated(EventKind.STALL, names[:8], amount=3_000)
    return replace(plan, members=members, faulty_ms=12_000, events=stalls)


def _duplicate_members(plan: SimulationPlan) -> SimulationPlan:
    """Each static member is started twice."""
    members = tuple(
        replace(each, instance_id=f"i-{each.name}", start_ms=0) for each in plan.members
    )
    names = [each.name for each in members] * 8
    duplicates = _repeated(EventKind.TWIN, names[:8], amount=0)
    return replace(plan, members=members, faulty_ms=12_000, events=duplicates)


def _orderly_rejoins(plan: SimulationPlan) -> SimulationPlan:
    """No faults; the group rebalances while there are many records to read."""
    members = tuple(
        replace(each, commits=CommitMode.AUTO, assignors=("range",), batch_max=2, start_ms=0)
        for each in plan.members
    )
    names = [each.name for each in members] * 8
    return replace(
        plan,
        members=members,
        faulty_ms=12_000,
        conditions=replace(plan.conditions, stall_chance=0.0),
        events=_repeated(EventKind.REJOIN, names[:8], amount=0),
    )


def _pipelines(plan: SimulationPlan) -> SimulationPlan:
    """Members are removed behind fetches that wait for the records of their rebalance."""
    members = tuple(replace(each, instance_id=None, start_ms=0) for each in plan.members)
    names = [each.name for each in members] * 16
    removals = _repeated(EventKind.PIPELINE, names[:16], amount=1)
    rejoins = tuple(
        replace(each, number=each.number + 16, kind=EventKind.REJOIN, at_ms=each.at_ms + 30)
        for each in removals
    )
    events = tuple(sorted((*removals, *rejoins), key=lambda each: each.at_ms))
    return replace(plan, members=members, faulty_ms=22_000, events=events)


def _repeated(kind: EventKind, targets: Sequence[str], amount: int) -> tuple[PlannedEvent, ...]:
    return tuple(
        PlannedEvent(
            number=number, at_ms=900 + 1_300 * number, kind=kind, target=target, amount=amount
        )
        for number, target in enumerate(targets)
    )


@value
class Mutation:
    name: str
    package: str
    mistake: str
    apply: Callable[[Patch], None]
    focus: Callable[[SimulationPlan], SimulationPlan] = _as_drawn
    """Changes a generated plan so that it meets the bug more often."""


@contextmanager
def applied(mutation: Mutation) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        mutation.apply(patch.setattr)
        yield


def find_catch(mutation: Mutation, first: int = 0, count: int = SEEDS_MAX) -> RunResult | None:
    """The first run that fails: of past failures, then of new seeds."""
    kept = (read_plan(file.read_text("utf-8")) for file in PAST_FAILURES)
    drawn = (mutation.focus(draw_plan(seed)) for seed in range(first, first + count))
    with applied(mutation):
        for plan in chain(kept, drawn):
            result = World(plan).run()
            if not result.is_good:
                return result
    return None


MUTATIONS = (
    Mutation(
        name="old-generation",
        package="coordinator",
        mistake="commits of old generations are accepted",
        apply=mutants.accept_old_commits,
        focus=_stalled_static_members,
    ),
    Mutation(
        name="old-heartbeat",
        package="coordinator",
        mistake="heartbeats of old generations are accepted",
        apply=mutants.accept_old_heartbeats,
        focus=_stalled_static_members,
    ),
    Mutation(
        name="fenced",
        package="coordinator",
        mistake="a fenced static member may commit",
        apply=mutants.let_fenced_commit,
        focus=_duplicate_members,
    ),
    Mutation(
        name="no-sessions",
        package="coordinator",
        mistake="session timers are not restored after a restart",
        apply=mutants.forget_sessions,
    ),
    Mutation(
        name="generation-lost",
        package="coordinator",
        mistake="a restart lowers the generation by one",
        apply=mutants.lose_generation,
        focus=_power_cuts,
    ),
    Mutation(
        name="no-append",
        package="node",
        mistake="group records are applied but not written",
        apply=mutants.skip_append,
    ),
    Mutation(
        name="failed-append",
        package="node",
        mistake="group records are applied although the write failed on a full disk",
        apply=mutants.ignore_failed_append,
        focus=_full_disks,
    ),
    Mutation(
        name="early-release",
        package="node",
        mistake="group responses are sent before their records are synced",
        apply=mutants.release_before_sync,
    ),
    Mutation(
        name="early-ack",
        package="node",
        mistake="produce responses are sent before their records are synced",
        apply=mutants.acknowledge_before_sync,
        focus=_power_cuts,
    ),
    Mutation(
        name="no-cancel",
        package="node",
        mistake="cancelled timers fire",
        apply=mutants.never_cancel,
    ),
    Mutation(
        name="wall-deadlines",
        package="node",
        mistake="deadlines follow the wall clock",
        apply=mutants.follow_wall_clock,
    ),
    Mutation(
        name="suspension-counts",
        package="node",
        mistake="the time in which the process was suspended counts for deadlines",
        apply=mutants.count_suspensions,
    ),
    Mutation(
        name="two-responses",
        package="node",
        mistake="SyncGroup gets two responses",
        apply=mutants.answer_twice,
    ),
    Mutation(
        name="sync-ignored",
        package="node",
        mistake="the node continues after a failed sync",
        apply=mutants.survive_failed_sync,
        focus=_failing_syncs,
    ),
    Mutation(
        name="reentered",
        package="node",
        mistake="a fetch is completed before the records it waited for are applied",
        apply=mutants.reenter_decide,
        focus=_pipelines,
    ),
    Mutation(
        name="torn-tail",
        package="log",
        mistake="recovery does not check CRCs",
        apply=mutants.skip_crc_check,
        focus=_torn_batches,
    ),
    Mutation(
        name="old-indexes",
        package="log",
        mistake="recovery trusts indexes written after the last checkpoint",
        apply=mutants.trust_new_indexes,
        focus=_power_cuts,
    ),
    Mutation(
        name="torn-segment",
        package="log",
        mistake="recovery indexes a segment before it checks its tail",
        apply=mutants.index_torn_segments,
        focus=_unsynced_cuts,
    ),
    Mutation(
        name="unsynced-names",
        package="log",
        mistake="directories are not synced after files are created",
        apply=mutants.forget_new_names,
    ),
    Mutation(
        name="early-checkpoint",
        package="log",
        mistake="the recovery point is ahead of the synced data",
        apply=mutants.checkpoint_unsynced,
        focus=_torn_batches,
    ),
    Mutation(
        name="duplicates",
        package="log",
        mistake="retried batches of idempotent producers are written again",
        apply=mutants.write_twice,
    ),
    Mutation(
        name="compaction",
        package="log",
        mistake="compaction drops records without a newer one",
        apply=mutants.compact_too_much,
        focus=_small_segments,
    ),
    Mutation(
        name="kept-partitions",
        package="client",
        mistake="a member without a generation keeps its partitions",
        apply=mutants.keep_after_reset,
        focus=_expired_members,
    ),
    Mutation(
        name="no-reset",
        package="client",
        mistake="a removed member continues as if it was in the group",
        apply=mutants.keep_generation,
    ),
    Mutation(
        name="too-far",
        package="client",
        mistake="commits are one record too far",
        apply=mutants.commit_too_far,
    ),
    Mutation(
        name="uncommitted",
        package="client",
        mistake="partitions are revoked without committing processed records",
        apply=mutants.revoke_uncommitted,
    ),
    Mutation(
        name="no-return",
        package="client",
        mistake="a cooperative member does not rejoin after a revocation",
        apply=mutants.do_not_rejoin,
    ),
    Mutation(
        name="assigned-too-few",
        package="client",
        mistake="the leader does not assign the last partition of a topic",
        apply=mutants.assign_too_few,
    ),
    Mutation(
        name="assigned-twice",
        package="client",
        mistake="the leader assigns one partition to two members",
        apply=mutants.assign_twice,
    ),
    Mutation(
        name="not-revoked",
        package="client",
        mistake="a member keeps partitions that it has revoked",
        apply=mutants.keep_revoked,
    ),
    Mutation(
        name="committed-ignored",
        package="client",
        mistake="a consumer ignores the committed offset",
        apply=mutants.ignore_committed,
    ),
    Mutation(
        name="record-skipped",
        package="client",
        mistake="each fetch starts one record too late",
        apply=mutants.skip_after_fetch,
    ),
    Mutation(
        name="unfinished",
        package="client",
        mistake="auto-commit includes records that are still being processed",
        apply=mutants.commit_unfinished,
    ),
    Mutation(
        name="read-while-revoking",
        package="client",
        mistake="poll returns records of a partition after its revocation has started",
        apply=mutants.read_while_revoking,
        focus=_orderly_rejoins,
    ),
)


# The table

BEGIN, END = "<!-- mutations -->\n", "<!-- /mutations -->"


def table() -> str:
    rows = [f"| {each.name} | {each.package} | {each.mistake} |" for each in MUTATIONS]
    return "\n".join(["| mutation | package | bug |", "| --- | --- | --- |", *rows]) + "\n"


def with_table(page: str) -> str:
    """The page with the current table."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, f"the page lacks {BEGIN!r} or {END!r}"
    return f"{before}{BEGIN}{table()}{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Print which seed catches which mutation.")
    parser.add_argument("names", nargs="*", help="only these mutations")
    parser.add_argument(
        "--doc", action="store_true", help="regenerate the table in docs/contributing/testing.md"
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.doc:
        page = Path(__file__).parents[2] / "docs" / "contributing" / "testing.md"
        page.write_text(with_table(page.read_text("utf-8")), "utf-8")
        return
    for mutation in MUTATIONS:
        if arguments.names and mutation.name not in arguments.names:
            continue
        caught = find_catch(mutation, arguments.seed)
        what = "not caught"
        if caught is not None:
            what = f"seed {caught.plan.seed}, {caught.rule}: {caught.what[:90]}"
        sys.stdout.write(f"{mutation.name:16} {what}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
