"""Deliberate mistakes, each of which some seed must bring to light: the net has no holes.

    python -m tests.sim.mutations          says which seed catches which
    python -m tests.sim.mutations --doc    writes the table in docs/testing.md anew

A mutation replaces one function of ours by a wrong one, in this process, for as long as it is
applied. It is a mistake that somebody could make, not an error that anybody would notice.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from kohort.sim.drawing import draw_plan
from kohort.sim.plan import Commits, Decision, Kind, Plan
from kohort.sim.planfile import read_plan
from kohort.sim.world import Verdict, World
from kohort.types import value
from tests.sim import mistakes
from tests.sim.mistakes import Patch

PAST_FAILURES = sorted((Path(__file__).parent / "seeds").glob("*.seed"))

SEEDS_MAX = 150
"""Within so many a mistake must be found. `make soak` tries more than a hundred times as many."""


def _as_drawn(plan: Plan) -> Plan:
    return plan


def _power_cuts(plan: Plan) -> Plan:
    """Again and again, on small segments."""
    return replace(
        plan,
        durability="fsync",
        segment_bytes=700,
        housekeeping_ms=700,
        faulty_ms=12_000,
        decisions=_repeated(Kind.NODE_POWER, ("",) * 8, amount=10),
    )


def _unsynced_cuts(plan: Plan) -> Plan:
    """Where nothing is synced, so that whole segments are torn."""
    return replace(_power_cuts(plan), durability="os", housekeeping_ms=10_000)


def _torn_batches(plan: Plan) -> Plan:
    """Larger than a sector, and often half written."""
    return replace(
        _power_cuts(plan),
        segment_bytes=0,
        sync_ms=(5, 60),
        producers=tuple(replace(each, records_max=100, interval_ms=200) for each in plan.producers),
        members=tuple(replace(each, batch_max=500, record_ms=0.01) for each in plan.members),
    )


def _full_disks(plan: Plan) -> Plan:
    full = _repeated(Kind.DISK_FULL, ("",) * 8, amount=500)
    return replace(plan, faulty_ms=12_000, decisions=full)


def _failing_syncs(plan: Plan) -> Plan:
    failing = _repeated(Kind.SYNC_FAILS, ("",) * 8, amount=0)
    return replace(plan, durability="fsync", faulty_ms=12_000, decisions=failing)


def _left_behind(plan: Plan) -> Plan:
    """Static members stay in a group that goes on without them."""
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
    stalls = _repeated(Kind.STALL, names[:8], amount=3_500)
    rejoins = tuple(
        replace(each, number=each.number + 8, kind=Kind.REJOIN, target=name, at_ms=each.at_ms + 50)
        for each, name in zip(stalls, names[1:], strict=False)
    )
    decisions = tuple(sorted((*stalls, *rejoins), key=lambda each: each.at_ms))
    return replace(plan, members=members, faulty_ms=12_000, decisions=decisions)


def _small_segments(plan: Plan) -> Plan:
    """So that there is much to compact."""
    members = tuple(replace(each, commits=Commits.SYNC, batch_max=2) for each in plan.members)
    return replace(plan, segment_bytes=700, housekeeping_ms=700, faulty_ms=25_000, members=members)


def _zombies(plan: Plan) -> Plan:
    """Everyone in turn is taken for dead, and comes back with something to say."""
    members = tuple(
        replace(each, session_ms=1_000, heartbeat_ms=250, max_poll_ms=20_000)
        for each in plan.members
    )
    names = [each.name for each in members] * 4
    stalls = _repeated(Kind.STALL, names[:8], amount=3_000)
    return replace(plan, members=members, faulty_ms=12_000, decisions=stalls)


def _twins(plan: Plan) -> Plan:
    """Everyone in turn is started twice."""
    members = tuple(
        replace(each, instance_id=f"i-{each.name}", start_ms=0) for each in plan.members
    )
    names = [each.name for each in members] * 8
    twins = _repeated(Kind.TWIN, names[:8], amount=0)
    return replace(plan, members=members, faulty_ms=12_000, decisions=twins)


def _repeated(kind: Kind, targets: Sequence[str], amount: int) -> tuple[Decision, ...]:
    return tuple(
        Decision(number=number, at_ms=900 + 1_300 * number, kind=kind, target=target, amount=amount)
        for number, target in enumerate(targets)
    )


@value
class Mutation:
    name: str
    room: str
    mistake: str
    apply: Callable[[Patch], None]
    focus: Callable[[Plan], Plan] = _as_drawn
    """Where a mistake hides well: what makes a drawn plan likelier to meet it."""


@contextmanager
def applied(mutation: Mutation) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        mutation.apply(patch.setattr)
        yield


def find_catch(mutation: Mutation, first: int = 0, count: int = SEEDS_MAX) -> Verdict | None:
    """The first run that goes wrong because of it: of past failures, then of new seeds."""
    kept = (read_plan(file.read_text("utf-8")) for file in PAST_FAILURES)
    drawn = (mutation.focus(draw_plan(seed)) for seed in range(first, first + count))
    with applied(mutation):
        for plan in chain(kept, drawn):
            verdict = World(plan).run()
            if not verdict.is_good:
                return verdict
    return None


MUTATIONS = (
    Mutation(
        name="old-generation",
        room="coordinator",
        mistake="a commit of any generation is taken for one of the present",
        apply=mistakes.accept_old_commits,
        focus=_left_behind,
    ),
    Mutation(
        name="old-heartbeat",
        room="coordinator",
        mistake="a heartbeat of any generation is taken for one of the present",
        apply=mistakes.accept_old_heartbeats,
        focus=_left_behind,
    ),
    Mutation(
        name="fenced",
        room="coordinator",
        mistake="a static member may commit after another process took its place",
        apply=mistakes.let_fenced_commit,
        focus=_twins,
    ),
    Mutation(
        name="no-sessions",
        room="coordinator",
        mistake="after a restart nobody watches the members",
        apply=mistakes.forget_sessions,
    ),
    Mutation(
        name="generation-lost",
        room="coordinator",
        mistake="after a restart a group goes back by a generation",
        apply=mistakes.lose_generation,
        focus=_power_cuts,
    ),
    Mutation(
        name="no-append",
        room="node",
        mistake="the groups' records are applied and never written",
        apply=mistakes.skip_append,
    ),
    Mutation(
        name="failed-append",
        room="node",
        mistake="records that a full disk refused are applied all the same",
        apply=mistakes.take_failure_for_success,
        focus=_full_disks,
    ),
    Mutation(
        name="early-release",
        room="node",
        mistake="the groups' answers leave before their records are synced",
        apply=mistakes.release_before_sync,
    ),
    Mutation(
        name="early-ack",
        room="node",
        mistake="producers are answered before their records are synced",
        apply=mistakes.acknowledge_before_sync,
        focus=_power_cuts,
    ),
    Mutation(
        name="no-cancel",
        room="node",
        mistake="a timer that was cancelled fires all the same",
        apply=mistakes.never_cancel,
    ),
    Mutation(
        name="twice-answered",
        room="node",
        mistake="a sync is answered twice",
        apply=mistakes.answer_twice,
    ),
    Mutation(
        name="sync-ignored",
        room="node",
        mistake="the node goes on after a sync has failed",
        apply=mistakes.survive_failed_sync,
        focus=_failing_syncs,
    ),
    Mutation(
        name="torn-tail",
        room="log",
        mistake="recovery does not look at checksums",
        apply=mistakes.believe_torn_tails,
        focus=_torn_batches,
    ),
    Mutation(
        name="old-indexes",
        room="log",
        mistake="recovery believes indexes that were written after the last checkpoint",
        apply=mistakes.overtrust_indexes,
        focus=_power_cuts,
    ),
    Mutation(
        name="torn-segment",
        room="log",
        mistake="recovery indexes a segment before it has looked at its tail",
        apply=mistakes.index_torn_segments,
        focus=_unsynced_cuts,
    ),
    Mutation(
        name="unsynced-names",
        room="log",
        mistake="the names of new files are never synced",
        apply=mistakes.forget_new_names,
    ),
    Mutation(
        name="early-checkpoint",
        room="log",
        mistake="the recovery point runs ahead of what is synced",
        apply=mistakes.promise_unsynced,
        focus=_torn_batches,
    ),
    Mutation(
        name="duplicates",
        room="log",
        mistake="what an idempotent producer sends again is written again",
        apply=mistakes.write_twice,
    ),
    Mutation(
        name="compaction",
        room="log",
        mistake="compaction drops records that nothing has replaced",
        apply=mistakes.compact_too_much,
        focus=_small_segments,
    ),
    Mutation(
        name="kept-partitions",
        room="client",
        mistake="a member that is out of its generation keeps its partitions",
        apply=mistakes.keep_after_reset,
        focus=_zombies,
    ),
    Mutation(
        name="no-reset",
        room="client",
        mistake="a member that was put out of its group speaks on as if it was in it",
        apply=mistakes.lose_nothing,
    ),
    Mutation(
        name="too-far",
        room="client",
        mistake="a member commits one record more than was processed",
        apply=mistakes.commit_too_far,
    ),
    Mutation(
        name="uncommitted",
        room="client",
        mistake="a member gives up partitions without committing what was done with them",
        apply=mistakes.give_up_uncommitted,
    ),
    Mutation(
        name="no-return",
        room="client",
        mistake="a member that gave up partitions for others does not join again",
        apply=mistakes.do_not_come_back,
    ),
    Mutation(
        name="dealt-short",
        room="client",
        mistake="a leader forgets the last partition of every topic",
        apply=mistakes.deal_short,
    ),
    Mutation(
        name="dealt-twice",
        room="client",
        mistake="a leader gives one partition to two members",
        apply=mistakes.deal_twice,
    ),
    Mutation(
        name="not-given-up",
        room="client",
        mistake="a member still holds what it has given up",
        apply=mistakes.hold_while_giving_up,
    ),
)


# The table

BEGIN, END = "<!-- mutations -->\n", "<!-- /mutations -->"


def table() -> str:
    rows = [f"| {each.name} | {each.room} | {each.mistake} |" for each in MUTATIONS]
    return "\n".join(["| mutation | room | mistake |", "| --- | --- | --- |", *rows]) + "\n"


def with_table(page: str) -> str:
    """The page with the table as it should be."""
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, f"the page has no place between {BEGIN!r} and {END!r}"
    return f"{before}{BEGIN}{table()}{END}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Which seed catches which mutation?")
    parser.add_argument("names", nargs="*", help="these alone")
    parser.add_argument("--doc", action="store_true", help="write docs/testing.md anew")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.doc:
        page = Path(__file__).parents[2] / "docs" / "testing.md"
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
