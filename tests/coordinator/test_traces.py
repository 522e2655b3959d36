"""Plays every trace, also with a crash at every step."""

from dataclasses import replace
from pathlib import Path

import pytest

from kohort.coordinator.record_codec import decode_record, encode_record
from kohort.coordinator.records import OffsetCommitted, OneRecord, TransactionEnded
from kohort.types import ZERO_UUID
from tests.coordinator.driver import rebuilt
from tests.coordinator.trace_player import FOLDER, Player, read

LINES_MAX = 80
TRACES = sorted(FOLDER.rglob("*.trace"))

each_trace = pytest.mark.parametrize(
    "path", TRACES, ids=lambda path: str(path.relative_to(FOLDER).with_suffix(""))
)


@each_trace
def test_trace_is_reproduced(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text()

    played = Player().play(read(text)).text

    if request.config.getoption("--rewrite") and played != text:
        path.write_text(played)
    else:
        assert played.splitlines() == text.splitlines()


@each_trace
def test_trace_is_reproduced_after_a_crash_at_any_step(path: Path) -> None:
    player = Player()

    for stanza in read(path.read_text()).stanzas:
        player.perform(stanza)

        live = player.driver.coordinator.hard_state()
        kept = player.driver.records
        assert rebuilt(kept).hard_state() == live
        stored = rebuilt([_as_stored(record) for record in kept])
        assert rebuilt([_through_bytes(record) for record in kept]).hard_state() == (
            stored.hard_state()
        )
    assert not player.find_unanswerable()


@each_trace
def test_trace_is_short_and_named_by_its_title(path: Path) -> None:
    trace = read(path.read_text())

    words = "".join(letter if letter.isalnum() else " " for letter in trace.title.lower())
    assert path.stem == "-".join(words.split())
    assert len(trace.text.splitlines()) <= LINES_MAX


def _through_bytes(record: OneRecord) -> OneRecord:
    if isinstance(record, TransactionEnded):
        return record
    encoded = encode_record(record)
    producer = (
        (record.producer_id, record.producer_epoch) if isinstance(record, OffsetCommitted) else ()
    )
    decoded = decode_record(encoded.key, encoded.value, *producer)
    assert type(decoded) is type(record), decoded
    return decoded


def _as_stored(record: OneRecord) -> OneRecord:
    """The one version of the value that can hold an expiry can hold neither epoch nor topic id."""
    if isinstance(record, OffsetCommitted) and record.expire_ms is not None:
        return replace(record, leader_epoch=-1, topic_id=ZERO_UUID)
    return record
