"""The shop's programs as real processes: what is done to them is done, and none is left."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import kohort
from kohort.demo.producing import Front, make_topic
from kohort.demo.schedule import Act, Deed, Scene
from kohort.demo.troupe import Troupe
from kohort.types import Millis
from tests.waiting import wait_until

NAME = "checkout-1"
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A node with orders on it, and more of them coming."""
    deaths: list[tuple[str, str]] = []
    with kohort.Node(settings={"group.initial.rebalance.delay.ms": 0}) as node:
        make_topic(node.bootstrap_servers)
        front = Front(node.bootstrap_servers, 1, lambda part, why: deaths.append((part, why)))
        yield node.bootstrap_servers
        front.close()
    assert not deaths


class Company:
    """A troupe, and what was heard of those that ended by themselves."""

    def __init__(self, servers: str, journals: Path) -> None:
        self.deaths: list[tuple[str, str]] = []
        self.troupe = Troupe(servers, journals, lambda name, why: self.deaths.append((name, why)))

    def do(self, deed: Deed, for_ms: int = 0) -> None:
        act = Act(at_ms=Millis(0), name=NAME, deed=deed, scene=Scene.STORM, for_ms=Millis(for_ms))
        self.troupe.carry_out(act)

    @property
    def records(self) -> int:
        return sum(self.troupe.consumed().values())

    def await_records(self, more_than: int = 0) -> None:
        wait_until(lambda: self.records > more_than, PATIENCE_S, "records to be read")


@pytest.fixture
def company(servers: str, tmp_path: Path) -> Iterator[Company]:
    company = Company(servers, tmp_path)
    yield company
    company.troupe.kill()


def test_a_program_that_was_stopped_and_started_again_reads_on(company: Company) -> None:
    company.do(Deed.START)
    company.await_records()

    company.do(Deed.STOP)
    company.do(Deed.START)
    before = company.records
    company.await_records(before)
    company.troupe.close()

    assert company.deaths == []


def test_all_can_be_ended_while_one_is_down_after_a_crash(company: Company) -> None:
    company.do(Deed.START)
    company.await_records()

    company.do(Deed.CRASH)
    company.troupe.close()

    assert company.deaths == []
    assert company.records > 0


@pytest.mark.parametrize("deed", [Deed.FREEZE, Deed.STALL])
def test_one_that_stands_still_leaves_when_all_are_ended(company: Company, deed: Deed) -> None:
    company.do(Deed.START)
    company.await_records()

    company.do(deed, for_ms=600_000)
    company.troupe.close()

    assert company.deaths == []


def test_a_frozen_program_goes_on_when_it_is_thawed(company: Company) -> None:
    company.do(Deed.START)
    company.await_records()

    company.do(Deed.FREEZE)
    company.do(Deed.THAW)
    company.await_records(company.records)

    assert company.deaths == []


def test_one_that_cannot_work_is_told_of_with_its_last_word(tmp_path: Path) -> None:
    company = Company("nowhere", tmp_path)

    company.do(Deed.START)
    wait_until(lambda: company.deaths, PATIENCE_S, "its end to be heard of")
    company.troupe.close()

    ((name, why),) = company.deaths
    assert name == NAME
    assert "nowhere" in why


def test_none_starts_when_all_are_killed(company: Company) -> None:
    company.troupe.kill()

    company.do(Deed.START)

    assert company.records == 0
    assert not list(company.troupe.journals.iterdir())
