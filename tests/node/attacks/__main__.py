"""Attacks fresh servers and prints one table of heartbeats, memory and outcomes.

    python -m tests.node.attacks --kafka --other-checkout ../before

Each attack has a fresh `kohort serve` of this source tree, with --other-checkout one of another
source tree, and with --kafka an Apache Kafka with the heap of its start script. Meanwhile a member
on another connection heartbeats every 20 ms, and a consumer produces, fetches and commits.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from tests.node.attacks.arena import Arena
from tests.node.attacks.attack import Attack
from tests.node.attacks.attack_list import ATTACKS
from tests.node.attacks.measurement import ROOT, Measurement, measure
from tests.node.attacks.servers import Server, run_kafka, run_kohort

Target = Callable[[], AbstractContextManager[Server]]


def main() -> None:
    options = _parse()
    targets: dict[str, Target] = {}
    if options.other_checkout:
        targets["before"] = partial(run_kohort, options.other_checkout)
    own = "after" if targets else "Kohort"
    targets[own] = partial(run_kohort, ROOT)
    if options.kafka:
        targets["Apache Kafka"] = run_kafka
    chosen = [each for each in ATTACKS if not options.only or each.name in options.only]
    problems = 0
    for line in heading([*targets]):
        print(line, flush=True)
    for attack in chosen:
        row = _run(attack, targets, options.scale)
        problems += len(row[own].problems)
        print(format_row(attack, [*row.values()]), flush=True)
    sys.exit(problems > 0)


def _run(attack: Attack, targets: dict[str, Target], scale: float) -> dict[str, Measurement]:
    prepared: dict[str, object] = {}
    row = {}
    for name, start in targets.items():
        print(f"{attack.name}: {name}", file=sys.stderr, flush=True)
        with start() as server:
            arena = Arena(port=server.port, scale=scale, prepared=prepared)
            try:
                row[name] = measure(server, attack, arena)
            except Exception as error:  # the other measurements are worth having
                row[name] = failed(error)
    return row


def failed(error: Exception) -> Measurement:
    problem = f"not measured: {type(error).__name__} {error}"
    return Measurement(heartbeat_s=0.0, growth_bytes=0, outcome="", problems=(problem,))


def heading(targets: Sequence[str]) -> list[str]:
    columns = ["attack"]
    for name in targets:
        columns += [f"{name}: longest heartbeat", f"{name}: memory", f"{name}: outcome"]
    return [f"| {' | '.join(columns)} |", f"| {' | '.join(['---'] * len(columns))} |"]


def format_row(attack: Attack, row: Sequence[Measurement]) -> str:
    cells = [f"{attack.what} (`{attack.name}`)"]
    for one in row:
        cells += [_seconds(one.heartbeat_s), f"{one.growth_bytes / (1 << 20):,.0f} MB"]
        cells.append("; ".join((one.outcome, *(f"**{each}**" for each in one.problems))))
    return f"| {' | '.join(cells)} |"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms" if seconds < 1 else f"{seconds:,.1f} s"


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [attack.name for attack in ATTACKS]
    parser.add_argument("--only", action="append", choices=names, help="may be repeated")
    parser.add_argument("--scale", type=float, default=1.0, help="0.01: a hundredth of all sizes")
    parser.add_argument("--kafka", action="store_true", help="attack Apache Kafka, too")
    parser.add_argument("--other-checkout", type=Path, metavar="DIR")
    return parser.parse_args()


if __name__ == "__main__":
    main()
