"""Every fast path can be disabled for a benchmark and is restored afterwards."""

from typing import Any

import pytest

from bench.fast_paths import (
    COMPACTING,
    KEYS_ALONE,
    LOADING,
    FastPath,
    commit_paths,
    heartbeat_paths,
    switched_off,
)

PATHS = [*heartbeat_paths(), *commit_paths(), LOADING, *COMPACTING, KEYS_ALONE]


def interfaces(path: FastPath) -> list[Any]:
    return [getattr(owner, name) for owner, name, _ in path.off]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_a_fast_path_is_replaced_by_the_plain_code_and_restored(path: FastPath) -> None:
    before = interfaces(path)

    with switched_off(path):
        assert interfaces(path) == [plain for _, _, plain in path.off]

    assert interfaces(path) == before
