"""Scripted members and the load generator, each a process, on a node that is one as well."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.kit import spelling
from bench.kit.brokers import CannotDo, KohortBroker
from bench.kit.client import Client
from bench.kit.driving import Lane, Members, Seat, drive, form_once, heartbeat_lanes


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KohortBroker]:
    broker = KohortBroker(tmp_path_factory.mktemp("broker"), is_synced=False)
    broker.prepare()
    broker.start()
    yield broker
    broker.stop()


def is_in_good_standing(broker: KohortBroker, seat: Seat, generation: int) -> bool:
    with Client(broker.port) as client:
        answer = client.ask_raw(spelling.heartbeat(seat.group, seat.member_id, generation))
    return spelling.error_of(bytes(4) + answer) == 0


def test_members_form_groups_in_waves(broker: KohortBroker) -> None:
    with Members(broker) as members:
        seats = members.form([f"wave-{number}" for number in range(5)], 3, at_once=2)

    assert len({seat.member_id for seat in seats}) == 15
    assert all(is_in_good_standing(broker, seat, seat.generation) for seat in seats)


def test_a_rebalance_takes_everybody_along(broker: KohortBroker) -> None:
    with Members(broker) as members:
        seats = members.form(["many", "more"], 4)
        took = [members.rebalance(["many", "more"]) for _ in range(3)]

    assert all(seconds > 0 and busy >= 0 for seconds, busy in took)
    assert all(is_in_good_standing(broker, seat, seat.generation + 3) for seat in seats)


def test_a_group_of_one_can_rebalance(broker: KohortBroker) -> None:
    with Members(broker) as members:
        (seat,) = members.form(["alone"], 1)
        members.rebalance(["alone"])

    assert is_in_good_standing(broker, seat, seat.generation + 1)


def test_a_load_ends_after_so_many_answers(broker: KohortBroker) -> None:
    seats = form_once(broker, ["loaded"], 3)

    driven = drive(broker, heartbeat_lanes(seats), answers=200)

    assert driven.answers == 200
    assert 0 < driven.p50_ms <= driven.p99_ms


def test_an_answer_that_changes_is_noticed(broker: KohortBroker) -> None:
    (seat,) = form_once(broker, ["odd"], 1)
    frames = [spelling.heartbeat("odd", seat.member_id, each) for each in (seat.generation, 99)]

    with pytest.raises(CannotDo, match="another answer"):
        drive(broker, [Lane(frames=frames)], answers=10)


def test_a_killed_broker_finds_its_groups_again(tmp_path: Path) -> None:
    broker = KohortBroker(tmp_path / "broker", is_synced=False)
    broker.prepare()
    try:
        broker.start()
        (seat,) = form_once(broker, ["kept"], 1)

        broker.kill()
        broker.start()

        assert is_in_good_standing(broker, seat, seat.generation)
    finally:
        broker.stop()
