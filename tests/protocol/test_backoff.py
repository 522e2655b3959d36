"""How long it takes until something is tried again."""

from hypothesis import given
from hypothesis import strategies as st

from kohort.protocol.backoff import Backoff, backoff_ms
from kohort.types import Millis

FIRST, MOST = Millis(100), Millis(1_000)
NO_JITTER = 0.5


def test_delay_doubles_up_to_the_limit() -> None:
    waits = [backoff_ms(attempts, FIRST, MOST, NO_JITTER) for attempts in range(6)]

    assert waits == [100, 200, 400, 800, 1_000, 1_000]


def test_jitter_is_20_percent_within_the_limit() -> None:
    assert backoff_ms(0, FIRST, MOST, 0.0) == 80
    assert backoff_ms(0, FIRST, MOST, 0.999) == 119
    assert backoff_ms(9, FIRST, MOST, 0.999) == 1_000


def test_first_delay_above_the_limit_is_the_limit() -> None:
    assert backoff_ms(0, Millis(500), Millis(200), 0.0) == 200
    assert backoff_ms(7, Millis(500), Millis(200), 0.9) == 200


def test_after_returns_the_time_of_the_next_attempt() -> None:
    backoff = Backoff(FIRST, MOST, lambda: NO_JITTER)

    assert backoff.after(Millis(5_000), 1) == 5_200


@given(
    attempts=st.integers(0, 10_000),
    first=st.integers(0, 10**6),
    most=st.integers(0, 10**7),
    roll=st.floats(0, 1, exclude_max=True),
)
def test_delay_is_between_zero_and_the_limit(
    attempts: int, first: int, most: int, roll: float
) -> None:
    assert 0 <= backoff_ms(attempts, Millis(first), Millis(most), roll) <= most
