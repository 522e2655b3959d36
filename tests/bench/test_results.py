"""The benchmark page is generated from the stored results, and lists every benchmark."""

from pathlib import Path

from bench.__main__ import NAMES
from bench.kit.results import PAGE, STORED, from_stored, renew

ELSEWHERE = {"alternatives"}
"""It compares more than two brokers. Its table is in docs/guide/testing.md."""


def test_the_page_shows_the_stored_results() -> None:
    stored = from_stored(STORED.read_text("utf-8")) if STORED.exists() else []

    page = PAGE.read_text("utf-8")

    assert page == renew(page, stored), "stale: run `python -m bench.kit.results`"


def test_every_benchmark_program_is_listed() -> None:
    folder = STORED.parent

    def is_program(path: Path) -> bool:
        return 'if __name__ == "__main__":' in path.read_text("utf-8")

    files = [*folder.glob("*.py"), *folder.glob("beside_kafka/*.py")]
    programs = {
        ".".join(path.relative_to(folder).with_suffix("").parts)
        for path in files
        if is_program(path) and path.name != "__main__.py"
    }

    assert {*NAMES, *ELSEWHERE} == programs
