"""One corpus of every kind, made once and read back by all."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from kohort.corpus.making import Made, Plan, make
from tests.corpus.histories import History, read_corpus

PLAN = Plan(seed=7, hours=2)


@dataclass(frozen=True, slots=True)
class Corpus:
    directory: Path
    made: Made
    histories: dict[str, History]

    def of_kind(self, kind: str) -> History:
        (history,) = [each for each in self.histories.values() if each.kind == kind]
        return history


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    directory = tmp_path_factory.mktemp("corpus") / "seven"
    made = make(PLAN, directory)
    return Corpus(directory, made, read_corpus(directory))
