"""Numbers, durations and lists as text."""

from collections.abc import Iterable, Sequence

from kohort.types import Topic, TopicPartition


def duration(ms: float) -> str:
    """At most two units, without a zero second unit: 850 ms, 4.2 s, 3 min 20 s, 2 d 4 h."""
    ms = max(0, ms)
    if ms < 1000:
        return f"{round(ms)} ms"
    if ms < 59_950:
        return f"{ms / 1000:.1f}".removesuffix(".0") + " s"
    if ms < 3_599_500:
        return _two_units(round(ms / 1_000), 60, "min", "s")
    if ms < 86_370_000:
        return _two_units(round(ms / 60_000), 60, "h", "min")
    return _two_units(round(ms / 3_600_000), 24, "d", "h")


def _two_units(number: int, per: int, large: str, small: str) -> str:
    whole, rest = divmod(number, per)
    return f"{whole:,} {large}" + (f" {rest} {small}" if rest else "")


def count(number: int, noun: str, nouns: str | None = None) -> str:
    """1 rebalance, 1,204 rebalances."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def percent(share: float) -> str:
    """One decimal below 10 %, none above."""
    points = share * 100
    if points == 0:
        return "0 %"
    if points < 0.1:
        return "under 0.1 %"
    return f"{points:.1f} %" if points < 10 else f"{points:.0f} %"


def size(number_of_bytes: int) -> str:
    """512 B, 1.5 kB, 20.0 MB."""
    amount = float(number_of_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} TB"


def joined(words: Sequence[str]) -> str:
    """a, b and c."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last


def ranges_by_topic(
    partitions: Iterable[TopicPartition], separator: str = ", "
) -> dict[Topic, str]:
    """By topic, its partition numbers as ranges."""
    numbers: dict[Topic, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    return {topic: number_ranges(each, separator) for topic, each in numbers.items()}


def number_ranges(numbers: Iterable[int], separator: str = ", ") -> str:
    """0-3, 7 for 0, 1, 2, 3 and 7."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return separator.join(
        f"{first}" if first == last else f"{first}-{last}" for first, last in ranges
    )
