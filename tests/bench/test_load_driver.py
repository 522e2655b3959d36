"""Scripted members and the load generator, each in its own process, against a broker process."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.kit import request_frames
from bench.kit.brokers import CannotDo, KohortBroker
from bench.kit.client import Client
from bench.kit.load_driver import Lane, Members, Seat, drive, form_once, heartbeat_lanes


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KohortBroker]:
    broker = KohortBroker(tmp_path_factory.mktemp("broker"), is_synced=False)
    broker.prepare()
    broker.start()
    yield broker
    broker.stop()


def is_current_member(broker: KohortBroker, seat: Seat, generation: int) -> bool:
    with Client(broker.port) as client:
        answer = client.ask_raw(request_frames.heartbeat(seat.group, seat.member_id, generation))
    return request_frames.error_of(bytes(4) + answer) == 0


def test_members_form_groups_in_batches(broker: KohortBroker) -> None:
    with Members(broker) as members:
        seats = members.form([f"batch-{number}" for number in range(5)], 3, at_once=2)

    assert len({seat.member_id for seat in seats}) == 15
    assert all(is_current_member(broker, seat, seat.generation) for seat in seats)


def test_a_rebalance_includes_every_member(broker: KohortBroker) -> None:
    with Members(broker) as members:
        seats = members.form(["many", "more"], 4)
        took = [members.rebalance(["many", "more"]) for _ in range(3)]

    assert all(seconds > 0 and busy >= 0 for seconds, busy in took)
    assert all(is_current_member(broker, seat, seat.generation + 3) for seat in seats)


def test_a_group_with_one_member_can_rebalance(broker: KohortBroker) -> None:
    with Members(broker) as members:
        (seat,) = members.form(["alone"], 1)
        members.rebalance(["alone"])

    assert is_current_member(broker, seat, seat.generation + 1)


def test_a_load_stops_after_the_requested_number_of_responses(broker: KohortBroker) -> None:
    seats = form_once(broker, ["loaded"], 3)

    driven = drive(broker, heartbeat_lanes(seats), answers=200)

    assert driven.answers == 200
    assert 0 < driven.p50_ms <= driven.p99_ms


def test_a_response_with_a_different_error_fails_the_load(broker: KohortBroker) -> None:
    (seat,) = form_once(broker, ["odd"], 1)
    frames = [
        request_frames.heartbeat("odd", seat.member_id, each) for each in (seat.generation, 99)
    ]

    with pytest.raises(CannotDo, match="another answer"):
        drive(broker, [Lane(frames=frames)], answers=10)


def test_a_killed_broker_restores_its_groups(tmp_path: Path) -> None:
    broker = KohortBroker(tmp_path / "broker", is_synced=False)
    broker.prepare()
    try:
        broker.start()
        (seat,) = form_once(broker, ["kept"], 1)

        broker.kill()
        broker.start()

        assert is_current_member(broker, seat, seat.generation)
    finally:
        broker.stop()
