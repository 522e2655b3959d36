"""What a coordinator makes of a log, byte by byte: written by us, or by any Kafka before us."""

import json
from pathlib import Path

import pytest

from kohort.coordinator.limits import Limits
from kohort.coordinator.notes import RebalanceStarted, Trigger
from kohort.coordinator.outcome import TimerKey, TimerKind
from kohort.coordinator.recordcodec import Skipped, decode_record, encode_record
from kohort.coordinator.records import TransactionEnded
from kohort.types import (
    ErrorCode,
    GroupId,
    Topic,
)
from tests.coordinator.scene import GROUP, stable_pair
from tests.coordinator.stored import NOW, Stored, ended, group, loaded, member, offset, tombstone

SHOWS = (
    "loading.stable",
    "loading.empty",
    "loading.simple",
    "loading.tombstone",
    "loading.transactions",
    "loading.over-capacity",
    "expiry.empty-group-without-time",
)

DAY_MS = 24 * 60 * 60_000
VECTORS = json.loads(
    (Path(__file__).parents[1] / "wire" / "vectors" / "records.json").read_text(encoding="utf-8")
)

# Groups


@pytest.mark.parametrize("version", range(5))
def test_a_group_with_members_is_stable_whatever_wrote_it(version: int) -> None:
    scene = loaded(group(member("a-1", "i"), member("b-1"), version=version))

    described = scene.describe()
    assert (described.state, described.protocol_type, described.protocol) == (
        "Stable",
        "consumer",
        "range",
    )
    assert [each.member_id for each in described.members] == ["a-1", "b-1"]
    assert described.members[0].instance_id == ("i" if version >= 3 else None)
    assert scene.sync("b-1", 5).assignment == b"share of b-1"
    assert scene.heartbeat("b-1", 5).error is ErrorCode.NONE


@pytest.mark.parametrize("version", range(5))
def test_every_session_begins_when_loading_ends(version: int) -> None:
    scene = loaded(group(member("a-1"), member("b-1"), version=version))
    assert scene.session_deadline("a-1") == scene.session_deadline("b-1") == NOW + 10_000

    scene.advance(9_999)
    scene.heartbeat("a-1", 5)
    scene.advance(1)

    assert [each.member_id for each in scene.describe().members] == ["a-1"]


@pytest.mark.parametrize(("version", "timeout_ms"), [(0, 10_000), (1, 60_000), (4, 60_000)])
def test_the_oldest_groups_rebalance_within_their_session_timeout(
    version: int, timeout_ms: int
) -> None:
    scene = loaded(group(member("a-1"), member("b-1"), version=version))

    scene.admit("c", rebalance_ms=5_000)

    assert scene.driver.timers[TimerKey(TimerKind.JOIN, GROUP)] == NOW + timeout_ms


@pytest.mark.parametrize("version", range(5))
def test_a_group_without_members_is_empty(version: int) -> None:
    scene = loaded(group(version=version))

    described = scene.describe()
    assert (described.state, described.protocol_type) == ("Empty", "consumer")
    assert scene.admit("a").is_parked
    scene.advance(3_000)
    assert scene.describe().members[0].member_id == "a-1"
    assert scene.sync("a-1", 6).error is ErrorCode.NONE


@pytest.mark.parametrize("leader", ["a-1", "gone-1", "", None])
def test_where_no_member_is_kept_as_leader_the_first_leads(leader: str | None) -> None:
    scene = loaded(group(member("a-1"), member("b-1"), leader=leader))

    assert scene.join("b", "b-1").joined.leader == "a-1"
    assert scene.join("a", "a-1").is_parked


def test_a_kept_leader_leads_on() -> None:
    scene = loaded(group(member("a-1"), member("b-1"), leader="b-1"))

    assert scene.join("a", "a-1").joined.leader == "b-1"


def test_a_group_with_too_many_members_rebalances_at_once() -> None:
    full = Limits(group_max_size=1)
    scene = loaded(group(member("a-1"), member("b-1")), limits=full)

    triggers = [n.trigger for n in scene.driver.notes if isinstance(n, RebalanceStarted)]
    assert triggers == [Trigger.OVER_CAPACITY]
    assert scene.heartbeat("a-1", 5).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.commit({0: 9}, "b-1", 5).error is ErrorCode.NONE
    assert scene.session_deadline("b-1") == NOW + 10_000


def test_the_last_record_of_a_group_counts() -> None:
    scene = loaded(group(member("a-1")), group(member("b-1")))

    assert [each.member_id for each in scene.describe().members] == ["b-1"]


def test_a_removed_group_is_gone() -> None:
    scene = loaded(group(member("a-1")), tombstone(group()))

    assert scene.describe().error is ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_outlive_the_tombstone_of_their_group() -> None:
    scene = loaded(group(member("a-1")), offset(42), tombstone(group()))

    assert scene.committed(0) == [42]
    described = scene.describe()
    assert (described.state, described.protocol_type) == ("Empty", "")


def test_what_was_stable_with_us_is_stable_again() -> None:
    before = stable_pair()
    before.commit({0: 42}, "a-1", 1)
    log: list[Stored] = []
    for record in before.driver.records:
        assert not isinstance(record, TransactionEnded)
        encoded = encode_record(record)
        log.append((encoded.key, encoded.value, None))

    after = loaded(*log)

    assert after.describe() == before.describe()
    assert after.committed(0) == [42]
    assert after.driver.machine.hard_state() == before.driver.machine.hard_state()


# Offsets


@pytest.mark.parametrize("key_version", [0, 1])
@pytest.mark.parametrize("version", range(5))
def test_an_offset_is_there_whatever_wrote_it(version: int, key_version: int) -> None:
    scene = loaded(offset(42, version=version, key_version=key_version))

    assert scene.committed(0) == [42]
    described = scene.describe()
    assert (described.state, described.protocol_type) == ("Empty", "")


def test_old_and_new_keys_name_the_same_offset() -> None:
    scene = loaded(offset(1, key_version=0, version=0), offset(2), offset(3, key_version=0))

    assert scene.committed(0) == [3]


def test_a_removed_offset_is_gone() -> None:
    scene = loaded(offset(42), offset(43, partition=1), tombstone(offset(0)))

    assert scene.committed(0, 1) == [-1, 43]


def test_an_offset_with_an_expiry_goes_by_that() -> None:
    expiring = offset(42, version=1, expire_ms=NOW + 2 * 600_000)
    scene = loaded(expiring, offset(43, partition=1))

    scene.advance(600_000)
    assert scene.committed(0, 1) == [42, 43]
    scene.advance(600_000)

    assert scene.committed(0, 1) == [-1, 43]


@pytest.mark.parametrize(
    ("version", "since_ms", "is_kept"),
    [
        (3, NOW - 8 * DAY_MS, False),
        (3, NOW, True),
        (1, NOW, False),
        (0, NOW, False),
    ],
)
def test_an_empty_group_whose_record_tells_no_time_goes_by_its_commits(
    version: int, since_ms: int, *, is_kept: bool
) -> None:
    old = offset(42, commit_ms=NOW - 8 * DAY_MS)
    scene = loaded(group(version=version, since_ms=since_ms), old)

    scene.advance(600_000)

    assert scene.committed(0) == [42 if is_kept else -1]


def test_a_simple_group_goes_by_its_commits() -> None:
    scene = loaded(offset(42, commit_ms=NOW - 8 * DAY_MS), offset(43, partition=1))

    scene.advance(600_000)

    assert scene.committed(0, 1) == [-1, 43]


def test_a_group_kept_without_a_protocol_type_is_simple() -> None:
    scene = loaded(group(protocol_type="", since_ms=NOW - 8 * DAY_MS), offset(42))

    scene.advance(600_000)

    assert scene.describe().protocol_type == ""
    assert scene.committed(0) == [42]


# Transactions


@pytest.mark.parametrize(("is_commit", "found"), [(True, 42), (False, -1)])
def test_an_offset_in_a_transaction_waits_for_the_marker(*, is_commit: bool, found: int) -> None:
    pending = loaded(offset(42, producer_id=9))
    over = loaded(offset(42, producer_id=9), ended(9, is_commit=is_commit))

    assert pending.committed(0) == [-1]
    assert over.committed(0) == [found]


EARLY, LATE = offset(1, producer_id=8), offset(2, producer_id=9)
COMMIT_EARLY, COMMIT_LATE = ended(8, is_commit=True), ended(9, is_commit=True)
ABORT_LATE = ended(9, is_commit=False)


@pytest.mark.parametrize(
    ("log", "found"),
    [
        ((EARLY, offset(2), COMMIT_EARLY), 2),
        ((offset(1), LATE, COMMIT_LATE), 2),
        ((offset(1), LATE, ABORT_LATE), 1),
        ((offset(1, producer_id=9), LATE, COMMIT_LATE), 2),
        ((EARLY, LATE, COMMIT_LATE, COMMIT_EARLY), 2),
        ((EARLY, LATE, COMMIT_EARLY, COMMIT_LATE), 2),
        ((EARLY, LATE, ABORT_LATE, COMMIT_EARLY), 1),
        ((EARLY, LATE, offset(3, producer_id=8), COMMIT_LATE, COMMIT_EARLY), 3),
        ((EARLY, tombstone(offset(0)), COMMIT_EARLY), -1),
        ((offset(1, producer_id=9), offset(3), LATE, COMMIT_LATE), 2),
        ((EARLY, COMMIT_LATE), -1),
        ((LATE, COMMIT_LATE, ABORT_LATE), 2),
    ],
)
def test_of_plain_and_transactional_offsets_the_later_record_counts(
    log: tuple[Stored | TransactionEnded, ...], found: int
) -> None:
    assert loaded(*log).committed(0) == [found]


def test_a_transaction_outlives_the_tombstone_of_its_group() -> None:
    assert loaded(EARLY, tombstone(group()), COMMIT_EARLY).committed(0) == [1]


def test_a_transaction_may_end_after_loading() -> None:
    scene = loaded(offset(42, producer_id=9), offset(43, partition=1))

    assert scene.committed(0, 1) == [-1, 43]
    scene.driver.machine.apply(ended(9, is_commit=True))

    assert scene.committed(0, 1) == [42, 43]


# What is no concern of ours


def test_records_of_newer_groups_and_damaged_ones_do_not_stop_the_load() -> None:
    strangers: list[Stored] = [
        (bytes.fromhex(each["hex"]), b"\x00\x00", None)
        for each in VECTORS
        if each["name"].endswith("Key") and each["version"] >= 3
    ]
    damaged: list[Stored] = [
        (b"\x00\x63?", b"?", None),
        (offset(0)[0], b"\x00\x04broken", None),
        (group()[0], b"\x00\x03broken", None),
        (b"", None, None),
    ]

    scene = loaded(group(member("a-1")), *strangers, offset(42), *damaged)

    assert len(strangers) == 7
    assert scene.state() == "Stable"
    assert scene.committed(0) == [42]


def test_a_record_without_a_key_does_not_stop_the_load() -> None:
    assert isinstance(decode_record(None, b"value"), Skipped)


# What Apache Kafka's own classes wrote


@pytest.mark.parametrize("number", range(len(VECTORS)))
def test_a_log_of_kafkas_own_bytes_is_loaded(number: int) -> None:
    vector = VECTORS[number]
    key = {
        "OffsetCommitValue": offset(0)[0],
        "LegacyOffsetCommitValue": offset(0, key_version=0)[0],
        "GroupMetadataValue": group()[0],
    }.get(vector["name"])
    stored = bytes.fromhex(vector["hex"])

    scene = loaded((stored, None, None) if key is None else (key, stored, None))

    members = vector["fields"].get("members", []) if key else []
    assert len(scene.describe().members) == len(members)
    found = vector["fields"].get("offset", -1) if key else -1
    assert scene.committed(0, topic=Topic("t"), group=GroupId("g")) == [found]
