"""Loading `__consumer_offsets`, written by Kohort or by any version of Apache Kafka."""

import json
from pathlib import Path

import pytest

from kohort.coordinator.config import GroupConfig
from kohort.coordinator.events import RebalanceStarted, Trigger
from kohort.coordinator.outcome import TimerKey, TimerKind
from kohort.coordinator.record_codec import Skipped, decode_record, encode_record
from kohort.coordinator.records import TransactionEnded
from kohort.types import (
    ErrorCode,
    GroupId,
    Topic,
)
from tests.coordinator.scenario import GROUP, stable_pair
from tests.coordinator.stored_log import (
    NOW,
    Stored,
    ended,
    group,
    loaded,
    member,
    offset,
    tombstone,
)

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
def test_loaded_group_with_members_is_stable(version: int) -> None:
    scenario = loaded(group(member("a-1", "i"), member("b-1"), version=version))

    described = scenario.describe()
    assert (described.state, described.protocol_type, described.protocol) == (
        "Stable",
        "consumer",
        "range",
    )
    assert [each.member_id for each in described.members] == ["a-1", "b-1"]
    assert described.members[0].instance_id == ("i" if version >= 3 else None)
    assert scenario.sync("b-1", 5).assignment == b"share of b-1"
    assert scenario.heartbeat("b-1", 5).error is ErrorCode.NONE


@pytest.mark.parametrize("version", range(5))
def test_sessions_start_when_loading_ends(version: int) -> None:
    scenario = loaded(group(member("a-1"), member("b-1"), version=version))
    assert scenario.session_deadline("a-1") == scenario.session_deadline("b-1") == NOW + 10_000

    scenario.advance(9_999)
    scenario.heartbeat("a-1", 5)
    scenario.advance(1)

    assert [each.member_id for each in scenario.describe().members] == ["a-1"]


@pytest.mark.parametrize(("version", "timeout_ms"), [(0, 10_000), (1, 60_000), (4, 60_000)])
def test_oldest_records_use_the_session_timeout_for_rebalances(
    version: int, timeout_ms: int
) -> None:
    scenario = loaded(group(member("a-1"), member("b-1"), version=version))

    scenario.admit("c", rebalance_ms=5_000)

    assert scenario.driver.timers[TimerKey(TimerKind.JOIN, GROUP)] == NOW + timeout_ms


@pytest.mark.parametrize("version", range(5))
def test_loaded_group_without_members_is_empty(version: int) -> None:
    scenario = loaded(group(version=version))

    described = scenario.describe()
    assert (described.state, described.protocol_type) == ("Empty", "consumer")
    assert scenario.admit("a").is_parked
    scenario.advance(3_000)
    assert scenario.describe().members[0].member_id == "a-1"
    assert scenario.sync("a-1", 6).error is ErrorCode.NONE


@pytest.mark.parametrize("leader", ["a-1", "gone-1", "", None])
def test_first_member_leads_if_the_record_has_no_leader(leader: str | None) -> None:
    scenario = loaded(group(member("a-1"), member("b-1"), leader=leader))

    assert scenario.join("b", "b-1").joined.leader == "a-1"
    assert scenario.join("a", "a-1").is_parked


def test_stored_leader_stays_leader() -> None:
    scenario = loaded(group(member("a-1"), member("b-1"), leader="b-1"))

    assert scenario.join("a", "a-1").joined.leader == "b-1"


def test_oversized_loaded_group_rebalances_at_once() -> None:
    full = GroupConfig(group_max_size=1)
    scenario = loaded(group(member("a-1"), member("b-1")), config=full)

    triggers = [n.trigger for n in scenario.driver.events if isinstance(n, RebalanceStarted)]
    assert triggers == [Trigger.OVER_CAPACITY]
    assert scenario.heartbeat("a-1", 5).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert scenario.commit({0: 9}, "b-1", 5).error is ErrorCode.NONE
    assert scenario.session_deadline("b-1") == NOW + 10_000


def test_last_record_of_a_group_wins() -> None:
    scenario = loaded(group(member("a-1")), group(member("b-1")))

    assert [each.member_id for each in scenario.describe().members] == ["b-1"]


def test_group_tombstone_removes_the_group() -> None:
    scenario = loaded(group(member("a-1")), tombstone(group()))

    assert scenario.describe().error is ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_survive_the_tombstone_of_their_group() -> None:
    scenario = loaded(group(member("a-1")), offset(42), tombstone(group()))

    assert scenario.committed(0) == [42]
    described = scenario.describe()
    assert (described.state, described.protocol_type) == ("Empty", "")


def test_stable_group_is_stable_after_a_restart() -> None:
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
    assert after.driver.coordinator.hard_state() == before.driver.coordinator.hard_state()


# Offsets


@pytest.mark.parametrize("key_version", [0, 1])
@pytest.mark.parametrize("version", range(5))
def test_offsets_of_every_version_are_loaded(version: int, key_version: int) -> None:
    scenario = loaded(offset(42, version=version, key_version=key_version))

    assert scenario.committed(0) == [42]
    described = scenario.describe()
    assert (described.state, described.protocol_type) == ("Empty", "")


def test_old_and_new_key_versions_name_the_same_offset() -> None:
    scenario = loaded(offset(1, key_version=0, version=0), offset(2), offset(3, key_version=0))

    assert scenario.committed(0) == [3]


def test_offset_tombstone_removes_the_offset() -> None:
    scenario = loaded(offset(42), offset(43, partition=1), tombstone(offset(0)))

    assert scenario.committed(0, 1) == [-1, 43]


def test_explicit_expiry_applies_after_loading() -> None:
    expiring = offset(42, version=1, expire_ms=NOW + 2 * 600_000)
    scenario = loaded(expiring, offset(43, partition=1))

    scenario.advance(600_000)
    assert scenario.committed(0, 1) == [42, 43]
    scenario.advance(600_000)

    assert scenario.committed(0, 1) == [-1, 43]


@pytest.mark.parametrize(
    ("version", "since_ms", "is_kept"),
    [
        (3, NOW - 8 * DAY_MS, False),
        (3, NOW, True),
        (1, NOW, False),
        (0, NOW, False),
    ],
)
def test_retention_uses_commit_times_if_the_group_record_has_no_timestamp(
    version: int, since_ms: int, *, is_kept: bool
) -> None:
    old = offset(42, commit_ms=NOW - 8 * DAY_MS)
    scenario = loaded(group(version=version, since_ms=since_ms), old)

    scenario.advance(600_000)

    assert scenario.committed(0) == [42 if is_kept else -1]


def test_retention_of_a_simple_group_uses_commit_times() -> None:
    scenario = loaded(offset(42, commit_ms=NOW - 8 * DAY_MS), offset(43, partition=1))

    scenario.advance(600_000)

    assert scenario.committed(0, 1) == [-1, 43]


def test_loaded_group_without_protocol_type_is_simple() -> None:
    scenario = loaded(group(protocol_type="", since_ms=NOW - 8 * DAY_MS), offset(42))

    scenario.advance(600_000)

    assert scenario.describe().protocol_type == ""
    assert scenario.committed(0) == [42]


# Transactions


@pytest.mark.parametrize(("is_commit", "found"), [(True, 42), (False, -1)])
def test_transactional_offset_is_pending_until_the_marker(*, is_commit: bool, found: int) -> None:
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
def test_later_record_wins_between_plain_and_transactional_offsets(
    log: tuple[Stored | TransactionEnded, ...], found: int
) -> None:
    assert loaded(*log).committed(0) == [found]


def test_transaction_survives_the_tombstone_of_its_group() -> None:
    assert loaded(EARLY, tombstone(group()), COMMIT_EARLY).committed(0) == [1]


def test_open_transaction_can_end_after_loading() -> None:
    scenario = loaded(offset(42, producer_id=9), offset(43, partition=1))

    assert scenario.committed(0, 1) == [-1, 43]
    scenario.driver.coordinator.apply(ended(9, is_commit=True))

    assert scenario.committed(0, 1) == [42, 43]


# What is no concern of ours


def test_unknown_and_corrupt_records_do_not_stop_loading() -> None:
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

    scenario = loaded(group(member("a-1")), *strangers, offset(42), *damaged)

    assert len(strangers) == 7
    assert scenario.state() == "Stable"
    assert scenario.committed(0) == [42]


def test_record_without_a_key_does_not_stop_loading() -> None:
    assert isinstance(decode_record(None, b"value"), Skipped)


# What Apache Kafka's own classes wrote


@pytest.mark.parametrize("number", range(len(VECTORS)))
def test_log_written_by_apache_kafka_is_loaded(number: int) -> None:
    vector = VECTORS[number]
    key = {
        "OffsetCommitValue": offset(0)[0],
        "LegacyOffsetCommitValue": offset(0, key_version=0)[0],
        "GroupMetadataValue": group()[0],
    }.get(vector["name"])
    stored = bytes.fromhex(vector["hex"])

    scenario = loaded((stored, None, None) if key is None else (key, stored, None))

    members = vector["fields"].get("members", []) if key else []
    assert len(scenario.describe().members) == len(members)
    found = vector["fields"].get("offset", -1) if key else -1
    assert scenario.committed(0, topic=Topic("t"), group=GroupId("g")) == [found]
