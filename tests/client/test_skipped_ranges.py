"""Skipped offsets are reported as ranges, and counted."""

from kohort.client.skipped_ranges import SkippedRanges
from kohort.types import Offset
from tests.client.fetched_batches import HERE


def test_adjacent_offsets_with_one_reason_are_one_range() -> None:
    lines: list[str] = []
    skipped = SkippedRanges(lines.append)

    for first, stop, reason in ((3, 4, "bad"), (4, 5, "bad"), (5, 9, "worse"), (20, 21, "worse")):
        skipped.add(HERE, Offset(first), Offset(stop), reason)
    skipped.report_total()

    assert lines == [
        "skipped offsets 3 to 4 of orders-3, which cannot be decoded: bad",
        "skipped offsets 5 to 8 of orders-3, which cannot be decoded: worse",
        "skipped offsets 20 to 20 of orders-3, which cannot be decoded: worse",
        "skipped 7 offsets in 3 ranges that cannot be decoded",
    ]


def test_without_skipped_offsets_nothing_is_reported() -> None:
    lines: list[str] = []

    SkippedRanges(lines.append).report_total()

    assert lines == []
