"""Recorded responses of Apache Kafka, so that Kohort can be compared without a Kafka.

One JSON file per script contains every conversation; versions with equal exchanges are stored once.
Each exchange is one line, so that a new recording has a readable diff. Known deviations of Kohort
are recorded with the exchange.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from kohort.types import value
from tests.contract.conversations.comparison import Deviation, Exchange
from tests.contract.conversations.masks import Json

RECORDED: Final = Path(__file__).parent / "recorded"


@value
class Run:
    """Versions of the varied API with equal exchanges."""

    versions: tuple[int | None, ...]
    exchanges: tuple[Exchange, ...]


Recording = tuple[Run, ...]


def merge(runs: Mapping[int | None, list[Exchange]]) -> Recording:
    """Merge runs with equal exchanges, also if their versions are not adjacent."""
    merged: list[Run] = []
    for version, exchanges in runs.items():
        kept = tuple(exchanges)
        for index, run in enumerate(merged):
            if run.exchanges == kept:
                merged[index] = Run(versions=(*run.versions, version), exchanges=kept)
                break
        else:
            merged.append(Run(versions=(version,), exchanges=kept))
    return tuple(merged)


def find_run(recording: Recording, version: int | None) -> tuple[Exchange, ...] | None:
    for run in recording:
        if version in run.versions:
            return run.exchanges
    return None


@cache
def read(path: Path) -> dict[str, Recording]:
    """Every conversation of a file, by name; empty if there is no file."""
    if not path.exists():
        return {}
    kept = json.loads(path.read_text("utf-8"))
    return {
        sentence: tuple(
            Run(
                versions=tuple(run["versions"]),
                exchanges=tuple(_exchange(each) for each in run["exchanges"]),
            )
            for run in runs
        )
        for sentence, runs in kept.items()
    }


def write(path: Path, recordings: Mapping[str, Recording]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(render(recordings), "utf-8")
    read.cache_clear()


def render(recordings: Mapping[str, Recording]) -> str:
    """The text of a recording file."""
    blocks = [
        f"  {json.dumps(sentence)}: [\n{_join(map(_render_run, runs))}\n  ]"
        for sentence, runs in recordings.items()
    ]
    return f"{{\n{_join(blocks)}\n}}\n"


def _render_run(run: Run) -> str:
    lines = (f"      {json.dumps(_jsonable(each))}" for each in run.exchanges)
    versions = json.dumps(run.versions)
    return f'    {{"versions": {versions}, "exchanges": [\n{_join(lines)}\n    ]}}'


def _join(blocks: Iterable[str]) -> str:
    return ",\n".join(blocks)


def _jsonable(exchange: Exchange) -> dict[str, Json]:
    kept: dict[str, Json] = {"who": exchange.who, "api": exchange.api}
    if exchange.version is not None:
        kept["version"] = exchange.version
    kept |= {"asked": exchange.asked, "answer": exchange.answer}
    if exchange.deviation is not None:
        kept["deviation"] = [exchange.deviation.because, *exchange.deviation.fields]
    return kept


def _exchange(kept: dict[str, Any]) -> Exchange:
    deviation = None
    if "deviation" in kept:
        because, *fields = kept["deviation"]
        deviation = Deviation(because=because, fields=tuple(fields))
    return Exchange(
        who=kept["who"],
        api=kept["api"],
        version=kept.get("version"),
        asked=kept["asked"],
        answer=kept["answer"],
        deviation=deviation,
    )
