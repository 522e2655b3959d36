"""InitProducerId: every id is given once, whatever happens in between."""

from pathlib import Path

import pytest

from kohort.types import Millis, ProducerEpoch, ProducerId, TransactionalId
from kohort.wire.api.k22_init_producer_id import InitProducerIdRequest
from tests.node.asking import Scene, name_of


def take(scene: Scene, version: int = 4) -> int:
    answer = scene.answer(InitProducerIdRequest(transactional_id=None), version)
    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    assert isinstance(answer.producer_id, int)
    return answer.producer_id


@pytest.mark.parametrize("version", range(7))
def test_every_producer_gets_an_id_of_its_own(scene: Scene, version: int) -> None:
    assert len({take(scene, version) for _ in range(5)}) == 5


def test_no_id_is_given_twice_across_restarts(scene: Scene) -> None:
    given = [take(scene) for _ in range(3)]
    scene.restart()
    given += [take(scene) for _ in range(3)]
    scene.restart()
    given += [take(scene) for _ in range(3)]

    assert len(set(given)) == 9


def test_no_id_is_given_twice_after_a_crash(tmp_path: Path) -> None:
    """Goal: a killed node leaves nothing but its files. Method: copy them while it runs."""
    living, left = tmp_path / "living", tmp_path / "left"
    scene = Scene(living)
    given = [take(scene) for _ in range(1500)]
    left.mkdir()
    for path in living.iterdir():
        if path.is_file() and path.name != ".lock":
            (left / path.name).write_bytes(path.read_bytes())
    scene.close()

    after = Scene(left)
    given += [take(after) for _ in range(1500)]

    assert len(set(given)) == 3000
    after.close()


def test_a_producer_that_shows_its_id_gets_a_new_one(scene: Scene) -> None:
    request = InitProducerIdRequest(
        transactional_id=None, producer_id=ProducerId(5), producer_epoch=ProducerEpoch(2)
    )

    answer = scene.answer(request, 4)

    assert (answer.error_code, answer.producer_epoch) == (0, 0)


@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 5)])
def test_an_id_without_an_epoch_makes_no_sense(scene: Scene, producer_id: int, epoch: int) -> None:
    request = InitProducerIdRequest(
        transactional_id=None,
        producer_id=ProducerId(producer_id),
        producer_epoch=ProducerEpoch(epoch),
    )

    answer = scene.answer(request, 4)

    assert name_of(answer.error_code) == "INVALID_REQUEST"
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


@pytest.mark.parametrize(
    ("transactional_id", "error"),
    [("", "INVALID_REQUEST"), ("tx", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")],
)
def test_there_are_no_transactions(scene: Scene, transactional_id: str, error: str) -> None:
    request = InitProducerIdRequest(
        transactional_id=TransactionalId(transactional_id), transaction_timeout_ms=Millis(1000)
    )

    assert name_of(scene.answer(request, 4).error_code) == error
