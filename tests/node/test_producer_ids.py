"""InitProducerId: every producer id is issued once."""

from pathlib import Path

import pytest

from kohort.types import Millis, ProducerEpoch, ProducerId, TransactionalId
from kohort.wire.api.k22_init_producer_id import InitProducerIdRequest
from tests.node.broker_harness import BrokerHarness, name_of


def take(harness: BrokerHarness, version: int = 4) -> int:
    answer = harness.answer(InitProducerIdRequest(transactional_id=None), version)
    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    assert isinstance(answer.producer_id, int)
    return answer.producer_id


@pytest.mark.parametrize("version", range(7))
def test_producer_ids_are_unique(harness: BrokerHarness, version: int) -> None:
    assert len({take(harness, version) for _ in range(5)}) == 5


def test_producer_ids_are_unique_across_restarts(harness: BrokerHarness) -> None:
    given = [take(harness) for _ in range(3)]
    harness.restart()
    given += [take(harness) for _ in range(3)]
    harness.restart()
    given += [take(harness) for _ in range(3)]

    assert len(set(given)) == 9


def test_producer_ids_are_unique_after_a_crash(tmp_path: Path) -> None:
    """Goal: a killed node leaves nothing but its files. Method: copy them while it runs."""
    living, left = tmp_path / "living", tmp_path / "left"
    harness = BrokerHarness(living)
    given = [take(harness) for _ in range(1500)]
    left.mkdir()
    for path in living.iterdir():
        if path.is_file() and path.name != ".lock":
            (left / path.name).write_bytes(path.read_bytes())
    harness.close()

    after = BrokerHarness(left)
    given += [take(after) for _ in range(1500)]

    assert len(set(given)) == 3000
    after.close()


def test_producer_with_an_id_gets_a_new_one(harness: BrokerHarness) -> None:
    request = InitProducerIdRequest(
        transactional_id=None, producer_id=ProducerId(5), producer_epoch=ProducerEpoch(2)
    )

    answer = harness.answer(request, 4)

    assert (answer.error_code, answer.producer_epoch) == (0, 0)


@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 5)])
def test_producer_id_without_epoch_is_refused(
    harness: BrokerHarness, producer_id: int, epoch: int
) -> None:
    request = InitProducerIdRequest(
        transactional_id=None,
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(epoch),
    )

    answer = harness.answer(request, 4)

    assert name_of(answer.error_code) == "INVALID_REQUEST"
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


@pytest.mark.parametrize(
    ("transactional_id", "error"),
    [("", "INVALID_REQUEST"), ("tx", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")],
)
def test_transactional_id_is_refused(
    harness: BrokerHarness, transactional_id: str, error: str
) -> None:
    request = InitProducerIdRequest(
        transactional_id=TransactionalId(transactional_id), transaction_timeout_ms=Millis(1000)
    )

    assert name_of(harness.answer(request, 4).error_code) == error
