"""The attacks at a small scale: the outcome is right, and the node stays correct.

`python -m tests.node.attacks` runs them at full scale and measures.
"""

from dataclasses import dataclass

import pytest

from tests.node.attacks import bulk_requests
from tests.node.attacks.arena import NO_ANSWER, Arena
from tests.node.attacks.attack import Attack
from tests.node.attacks.attack_list import ATTACKS, STORED
from tests.node.attacks.measurement import ROOT, bystander
from tests.node.attacks.servers import run_kohort
from tests.node.attacks.wire_client import WireClient

SCALE = 0.001


@dataclass(frozen=True, slots=True)
class AllAttacks:
    outcomes: dict[str, str]
    problems: list[str]
    """What another client has seen."""


@pytest.fixture(scope="module")
def all_attacks() -> AllAttacks:
    """One after the other, on one node."""
    outcomes = {}
    with run_kohort(ROOT) as server, bystander(server.port) as other:
        other.begin()
        for attack in ATTACKS:
            arena = Arena(port=server.port, scale=SCALE)
            delete_topics(arena)
            attack.prepare(arena)
            try:
                outcomes[attack.name] = attack.act(arena)()
            finally:
                arena.close()
        problems = other.end()["problems"]
        assert server.is_running()
        assert "Traceback" not in server.read_log()
    return AllAttacks(outcomes, problems)


def delete_topics(arena: Arena) -> None:
    with WireClient(arena.port) as client:
        for name in (bulk_requests.TOPIC, STORED):
            client.ask(bulk_requests.delete_topic(name), 5)


def test_attacks_affect_no_other_client(all_attacks: AllAttacks) -> None:
    assert all_attacks.problems == []


@pytest.mark.parametrize(
    "attack", [pytest.param(each, id=each.name) for each in ATTACKS if each.expected]
)
def test_attack_is_answered_correctly(all_attacks: AllAttacks, attack: Attack) -> None:
    assert all_attacks.outcomes[attack.name] in attack.expected


@pytest.mark.parametrize("attack", [each for each in ATTACKS if not each.expected])
def test_attack_is_answered_or_refused(all_attacks: AllAttacks, attack: Attack) -> None:
    assert all_attacks.outcomes[attack.name] not in ("", NO_ANSWER)
