"""Mutated requests of every API affect no other client."""

import os
import time
from random import Random
from typing import Any

import pytest

from kohort.node import dispatch
from kohort.node.dispatch import SERVED
from kohort.wire.api.k01_fetch import FetchRequest
from kohort.wire.envelope import encode_request
from tests.node import fuzz_frames
from tests.node.frame_tokens import request_tokens
from tests.node.random_requests import KnownValues, RandomRequests

FRAMES = 5_000
FRAMES_FULL = 200_000


@pytest.fixture
def seed() -> int:
    """A new one every time; a failure shows it, and KOHORT_SEED takes it."""
    seed = int(os.environ.get("KOHORT_SEED", time.time_ns() % 2**32))
    print(f"KOHORT_SEED={seed}")
    return seed


@pytest.mark.parametrize("count", [FRAMES, pytest.param(FRAMES_FULL, marks=pytest.mark.full)])
def test_mutated_requests_cause_no_internal_error(seed: int, count: int) -> None:
    sent = fuzz_frames.run(count, seed)

    assert sum(sent.values()) == count
    assert set(sent) == set(SERVED)


def test_tokens_of_a_request_are_its_encoding(seed: int) -> None:
    known = KnownValues(texts=("t",), blobs=(b"b",), ids=(bytes(16),))
    requests = RandomRequests(Random(seed), known)  # noqa: S311  # reproducible

    for _ in range(1_000):
        body, version = requests.next_request()
        tokens = request_tokens(body, version, 7)
        assert (
            b"".join(token.data for token in tokens) == encode_request(body, version, 7, "fuzz")[4:]
        )


def test_bug_in_a_handler_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = dispatch.handle

    def handle(broker: Any, request: Any, now: Any) -> None:
        if isinstance(request.body, FetchRequest):
            _ = 1 // max(0, request.body.max_bytes + 1)
        right(broker, request, now)

    monkeypatch.setattr(dispatch, "handle", handle)

    with pytest.raises(ZeroDivisionError):
        fuzz_frames.run(FRAMES, seed=1)
