"""One history of every scenario, generated once and read by all tests."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.histories.reader import GroupHistory, read_histories
from tools.histories.generator import HistoryCounts, HistoryOptions, generate

OPTIONS = HistoryOptions(seed=7, hours=2)


@dataclass(frozen=True, slots=True)
class GeneratedHistories:
    directory: Path
    counts: HistoryCounts
    groups: dict[str, GroupHistory]

    def of_scenario(self, scenario: str) -> GroupHistory:
        (history,) = [each for each in self.groups.values() if each.scenario == scenario]
        return history


@pytest.fixture(scope="session")
def generated(tmp_path_factory: pytest.TempPathFactory) -> GeneratedHistories:
    directory = tmp_path_factory.mktemp("histories") / "seven"
    counts = generate(OPTIONS, directory)
    return GeneratedHistories(directory, counts, read_histories(directory))
