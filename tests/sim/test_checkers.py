"""Every checker accepts a valid history and rejects an invalid one."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from kohort.coordinator.events import Departure, MemberGone, MemberInfo, StateChanged
from kohort.coordinator.groups.classic.states import GroupState
from kohort.sim.checkers import Violation
from kohort.sim.checkers.assignment_log import AssignmentLog
from kohort.sim.checkers.commit_durability import CommitDurability, SeenCommit
from kohort.sim.checkers.deliveries import Deliveries, Worker
from kohort.sim.checkers.evictions import Evictions
from kohort.sim.checkers.exclusive_ownership import ClaimedPartitions, ExclusiveOwnership
from kohort.sim.checkers.generation_fencing import GenerationFencing
from kohort.sim.checkers.liveness import find_lags
from kohort.sim.checkers.record_durability import RecordDurability
from kohort.sim.checkers.response_order import ResponseOrder
from kohort.sim.wire_tap import Exchange
from kohort.types import GroupId, MemberId, Millis, Partition, Topic, TopicPartition
from kohort.virtual_time.scheduler import MS, Scheduler
from kohort.wire.consumer_protocol import Assignment, TopicPartitions, encode_assignment

T0 = TopicPartition(Topic("t"), Partition(0))
T1 = TopicPartition(Topic("t"), Partition(1))


class Healthy(NamedTuple):
    """The part of a Link that checkers use."""

    name: str = "m0.1"
    is_healthy: bool = True


LINK: Any = Healthy()


# Ownership


def claim(*owned: TopicPartition, by: int = 1, instance_id: str | None = None) -> ClaimedPartitions:
    return ClaimedPartitions(group="g", instance_id=instance_id, owned=dict.fromkeys(owned, by))


def test_two_processes_may_not_own_a_partition_in_one_generation() -> None:
    ownership = ExclusiveOwnership()
    ownership.claims("m0", claim(T0))
    ownership.claims("m1", claim(T1))

    with pytest.raises(Violation, match="both own t-0"):
        ownership.claims("m1", claim(T0, T1))


def test_an_outdated_claim_in_an_older_generation_is_allowed() -> None:
    ownership = ExclusiveOwnership()
    ownership.claims("m0", claim(T0, by=1))

    ownership.claims("m1", claim(T0, by=2))
    ownership.ended("m1")
    ownership.claims("m0", claim(T0, by=2))


def test_two_processes_of_a_static_member_may_overlap() -> None:
    ownership = ExclusiveOwnership()
    ownership.claims("m0/1", claim(T0, instance_id="i"))

    ownership.claims("m0/2", claim(T0, instance_id="i"))


def test_claims_in_a_lost_generation_are_ignored() -> None:
    ownership = ExclusiveOwnership()
    ownership.claims("m0", claim(T0, T1))
    ownership.forgotten()
    ownership.claims("m0", claim(T0))

    ownership.claims("m1", claim(T0))

    with pytest.raises(Violation, match="m2 and m1 both own"):
        ownership.claims("m2", claim(T0))


# Generations


def exchange(**facts: Any) -> Exchange:
    return Exchange(LINK, 1, 0, 0, SimpleNamespace(**facts))


def joined(generation: int, member_id: str = "m", instance_id: str | None = None) -> Any:
    question = SimpleNamespace(group_id="g", group_instance_id=instance_id)
    return question, SimpleNamespace(generation_id=generation, member_id=member_id)


def synced(generation: int) -> Any:
    return SimpleNamespace(group_id="g", generation_id=generation)


def started(*reported: Any) -> GenerationFencing:
    generations = GenerationFencing()
    generations.node_loaded()
    for each in reported:
        generations.joined(*each)
    return generations


def test_a_generation_must_not_decrease() -> None:
    generations = started(joined(4), joined(4, "other"), joined(5))

    with pytest.raises(Violation, match="went from 5 to 4"):
        generations.joined(*joined(4))


def test_a_crash_may_undo_a_reported_but_not_a_formed_generation() -> None:
    generations = started(joined(4))
    generations.synced(synced(4))
    generations.joined(*joined(5))
    generations.node_ended()
    generations.node_loaded()

    generations.joined(*joined(4, "other"))

    with pytest.raises(Violation, match="went from 4 to 3"):
        generations.joined(*joined(3))


def test_requests_of_an_old_generation_must_be_rejected() -> None:
    generations = started(joined(4))
    early, late = exchange(), exchange()
    generations.request_arrived(early, "g", None)
    generations.joined(*joined(5))
    generations.request_arrived(late, "g", None)

    generations.accepted(early, "g", 4, "m", "a commit")

    with pytest.raises(Violation, match="a commit of 4 accepted in 5"):
        generations.accepted(late, "g", 4, "m", "a commit")


def test_requests_of_a_fenced_member_must_be_rejected() -> None:
    generations = started(joined(4, "old", "i"), joined(4, "new", "i"))
    said = exchange()
    generations.request_arrived(said, "g", "i")

    generations.accepted(said, "g", 4, "new", "a commit")

    with pytest.raises(Violation, match="fenced by new"):
        generations.accepted(said, "g", 4, "old", "a commit")


def test_requests_of_a_non_member_must_be_rejected() -> None:
    generations = started(joined(4))
    said = exchange()
    generations.request_arrived(said, "g", None)

    with pytest.raises(Violation, match="not in 4"):
        generations.accepted(said, "g", 4, "stranger", "a heartbeat")


# Commits


def commits_after(*kept: tuple[int, str]) -> CommitDurability:
    """Offsets with their writers, each acknowledged."""
    commits = CommitDurability(lambda *_: None)
    for order, (offset, member_id) in enumerate(kept):
        commits.arrived("g", T0, SeenCommit(order=order, offset=offset, writer=(1, member_id)))
        commits.accepted("g", T0, order)
    return commits


def test_offset_fetch_returns_the_last_acknowledged_commit() -> None:
    commits = commits_after((5, "m"), (7, "m"))

    commits.fetched("g", T0, 7, 7)

    with pytest.raises(Violation, match="was fetched as 5, expected one of 7"):
        commits.fetched("g", T0, 5, 7)


def test_a_commit_without_a_response_may_be_fetched_and_then_stays() -> None:
    commits = commits_after((5, "m"))
    commits.arrived("g", T0, SeenCommit(order=9, offset=8, writer=(1, "m")))

    commits.fetched("g", T0, 5, 5)
    commits.fetched("g", T0, 8, 5)

    with pytest.raises(Violation, match="was fetched as 5, expected one of 8"):
        commits.fetched("g", T0, 5, 8)


def test_a_commit_behind_a_parked_request_may_apply_after_a_later_commit() -> None:
    commits = CommitDurability(lambda *_: None)
    old = SeenCommit(order=1, offset=5, writer=(1, "m"), is_delayed=True)
    commits.arrived("g", T0, old)
    for order, offset in (2, 7), (3, 9):
        commits.arrived("g", T0, SeenCommit(order=order, offset=offset, writer=(1, "m")))
    commits.accepted("g", T0, 2)
    commits.accepted("g", T0, 1)

    commits.fetched("g", T0, 5, 7)
    commits.accepted("g", T0, 3)

    with pytest.raises(Violation, match="was fetched as 5, expected one of 9"):
        commits.fetched("g", T0, 5, 9)


def test_a_rejected_commit_is_never_fetched() -> None:
    commits = commits_after((5, "m"))
    commits.arrived("g", T0, SeenCommit(order=9, offset=8, writer=(1, "m")))

    commits.refused("g", T0, 9)

    with pytest.raises(Violation, match="was fetched as 8"):
        commits.fetched("g", T0, 8, 5)


def test_a_member_must_not_commit_behind_another_member() -> None:
    commits_after((5, "m"), (7, "m"), (6, "m"))

    with pytest.raises(Violation, match="moved from 7"):
        commits_after((5, "m"), (7, "m"), (6, "other"))


def test_a_later_owner_may_commit_behind_an_earlier_one() -> None:
    commits = commits_after()
    commits.arrived("g", T0, SeenCommit(order=1, offset=7, writer=(6, "missed"), assigned_in=3))
    commits.accepted("g", T0, 1)

    commits.arrived("g", T0, SeenCommit(order=2, offset=6, writer=(6, "owner"), assigned_in=5))
    commits.accepted("g", T0, 2)

    commits.arrived("g", T0, SeenCommit(order=3, offset=4, writer=(6, "missed"), assigned_in=3))
    with pytest.raises(Violation, match="moved from 6"):
        commits.accepted("g", T0, 3)


def test_the_assignment_log_knows_the_last_generation_of_a_partition() -> None:
    dealings = AssignmentLog()
    mine = Assignment(
        assigned_partitions=(TopicPartitions(topic=Topic("t"), partitions=(T0.partition,)),)
    )
    dealings.reported("g", "m", 3, encode_assignment(mine))

    dealings.reported("g", "m", 4, b"")

    assert dealings.find("g", "m", T0) == 3
    assert dealings.find("g", "m", T1) == dealings.find("g", "other", T0) == -1
    dealings.forgotten()
    assert dealings.find("g", "m", T0) == -1


def test_an_unsynced_node_may_lose_commits_but_not_invent_them() -> None:
    commits = commits_after((5, "m"), (7, "m"))

    commits.forgotten()
    commits.fetched("g", T0, 5, -1)

    with pytest.raises(Violation, match="was fetched as 6"):
        commits.fetched("g", T0, 6, 5)


# Records


def records() -> RecordDurability:
    return RecordDurability(lambda _: None, lambda text: text.startswith("unique"))


def test_an_acknowledged_record_stays_at_its_offset() -> None:
    seen = records()
    seen.acknowledged(T0, 0, ["a", "b"], 1, is_synced=True)

    seen.fetched(T0, 0, [(0, "a"), (1, "b")], 2)

    with pytest.raises(Violation, match="@1 was b, acknowledged, and is c"):
        seen.fetched(T0, 0, [(0, "a"), (1, "c")], 2)


def test_offsets_have_no_gaps() -> None:
    with pytest.raises(Violation, match="has offset 3 where 2 is expected"):
        records().fetched(T0, 1, [(1, "b"), (3, "d")], 1)


@pytest.mark.parametrize(("begin", "end"), [(0, 1), (1, 2)])
def test_acknowledged_records_lie_within_the_log(begin: int, end: int) -> None:
    seen = records()
    seen.acknowledged(T0, 0, ["a", "b"], 1, is_synced=True)
    seen.check_start_offset(T0, 0)
    seen.check_end_offset(T0, 2)

    def look() -> None:
        seen.check_start_offset(T0, begin)
        seen.check_end_offset(T0, end)

    with pytest.raises(Violation, match="was acknowledged"):
        look()


def test_unsynced_records_may_be_lost_only_in_a_power_failure() -> None:
    seen = records()
    seen.acknowledged(T0, 0, ["a"], 1, is_synced=False)
    seen.fetched(T0, 0, [(0, "a")], 2)

    seen.power_lost(3, is_all_lost=False)
    seen.acknowledged(T0, 0, ["b"], 4, is_synced=True)

    assert seen.acknowledged_records(T0) == {}, "who has read the first may never see the second"
    with pytest.raises(Violation, match="@0 was b, acknowledged, and is c"):
        seen.acknowledged(T0, 0, ["c"], 5, is_synced=True)


def test_out_of_range_and_lost_producer_state_need_a_power_failure() -> None:
    seen = records()
    with pytest.raises(Violation, match="out of range without a power failure"):
        seen.out_of_range(T0, 5)
    with pytest.raises(Violation, match="lost its producer state"):
        seen.sequence_lost(T0)

    seen.power_lost(1, is_all_lost=True)

    seen.out_of_range(T0, 5)
    seen.sequence_lost(T0)


def test_a_batch_of_an_idempotent_producer_is_stored_once() -> None:
    seen = records()
    seen.fetched(T0, 0, [(0, "plain"), (1, "plain"), (2, "unique")], 1)

    with pytest.raises(Violation, match="holds unique at 2 and at 3"):
        seen.fetched(T0, 3, [(3, "unique")], 1)


# Deliveries


def worker(generation: int = 1, member_id: str = "m") -> Worker:
    return Worker(process="m0/1", group="g", generation=generation, member_id=member_id)


def deliveries(*, is_orderly: bool = False) -> Deliveries:
    return Deliveries(lambda _: {0: "a", 1: "b"}, is_orderly=is_orderly)


def test_a_commit_covers_only_processed_records() -> None:
    seen = deliveries()
    seen.processed(worker(), T0, 0, "a")

    seen.committed("g", T0, 1, 1, "m")

    with pytest.raises(Violation, match=r"1 .b. was not processed"):
        seen.committed("g", T0, 2, 1, "m")


def test_a_committed_record_is_not_processed_again() -> None:
    seen = deliveries()
    seen.processed(worker(), T0, 0, "a")
    seen.committed("g", T0, 1, 1, "m")

    seen.taken(worker(0, "zombie"), T0, 0, "a")
    seen.taken(worker(2, "next"), T0, 1, "b")

    with pytest.raises(Violation, match="again after its commit"):
        seen.taken(worker(2, "next"), T0, 0, "a")


def test_records_behind_an_allowed_lower_commit_may_be_processed_again() -> None:
    seen = deliveries()
    seen.processed(worker(), T0, 0, "a")
    seen.committed("g", T0, 1, 1, "m")

    seen.moved_back("g", T0, 0)

    seen.taken(worker(2, "next"), T0, 0, "a")


def test_without_faults_no_record_is_processed_twice() -> None:
    seen = deliveries(is_orderly=True)
    seen.taken(worker(), T0, 0, "a")
    seen.processed(worker(), T0, 0, "a")

    with pytest.raises(Violation, match="without any fault"):
        seen.taken(worker(2, "next"), T0, 0, "a")


def test_every_acknowledged_record_is_processed() -> None:
    seen = deliveries()
    seen.processed(worker(), T0, 0, "a")
    with pytest.raises(Violation, match="t-0@1 was never processed"):
        seen.check_end("g", T0)

    seen.processed(worker(), T0, 1, "b")

    seen.check_end("g", T0)


# Liveness


def test_uncommitted_records_are_reported_as_lag() -> None:
    seen, commits = records(), commits_after((1, "m"))
    seen.acknowledged(T0, 0, ["a"], 1, is_synced=True)
    assert list(find_lags(commits, seen, deliveries(), {"g": [T0, T1]})) == []

    seen.acknowledged(T0, 1, ["b"], 1, is_synced=True)

    assert list(find_lags(commits, seen, deliveries(), {"g": [T0]})) == ["g/t-0 at 1 of 2"]


# Responses


def test_a_response_without_a_request_is_a_violation() -> None:
    answers = ResponseOrder()
    answers.request_sent(LINK, 1, 0)
    answers.response_received(LINK, 1)

    with pytest.raises(Violation, match="without a request in flight"):
        answers.response_received(LINK, 1)


def test_responses_must_be_in_order() -> None:
    answers = ResponseOrder()
    answers.request_sent(LINK, 1, 0)
    answers.request_sent(LINK, 2, 0)

    with pytest.raises(Violation, match="got response 2 instead of 1"):
        answers.response_received(LINK, 2)


def test_a_request_on_a_healthy_link_must_get_a_response() -> None:
    answers = ResponseOrder()
    answers.request_sent(LINK, 1, 100)
    answers.check_end(200, 1_000)

    with pytest.raises(Violation, match="has waited for 1 since 100 ms"):
        answers.check_end(2_000, 1_000)


# Evictions


def gone(departure: Departure) -> MemberGone:
    party = MemberInfo(member_id=MemberId("m"), instance_id=None, client_id="c", client_host="/h")
    return MemberGone(at=Millis(0), group_id=GroupId("g"), party=party, departure=departure)


class WatchedMember:
    """One member with a session timeout of 10 s and a rebalance timeout of 60 s."""

    def __init__(self) -> None:
        self.scheduler = Scheduler(units_per_ms=MS)
        self.evictions = Evictions(self.scheduler)
        request = SimpleNamespace(
            group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=60_000
        )
        self.evictions.joined(request, SimpleNamespace(member_id="m"))
        self.evictions.heard("g", "m", 0)

    def advance(self, ms: int) -> None:
        self.scheduler.run(self.scheduler.now + ms * MS)

    def remove(self, departure: Departure = Departure.SESSION_EXPIRED) -> None:
        self.evictions.groups_changed([gone(departure)])

    def begin_rebalance(self) -> None:
        self.enter(GroupState.PREPARING_REBALANCE)

    def enter(self, state: GroupState) -> None:
        moved = StateChanged(
            at=Millis(0), group_id=GroupId("g"), before=GroupState.STABLE, after=state
        )
        self.evictions.groups_changed([moved])


def test_a_silent_member_may_be_removed_after_its_session_timeout() -> None:
    member = WatchedMember()
    member.advance(10_000)

    member.remove()


def test_a_member_must_not_be_removed_within_its_session_timeout() -> None:
    member = WatchedMember()
    member.advance(6_000)
    member.evictions.heard("g", "m", member.evictions.running)
    member.advance(9_990)

    with pytest.raises(Violation, match="after 9990 of 10000 ms"):
        member.remove()


def test_a_member_must_not_be_removed_for_the_time_of_a_suspension() -> None:
    member = WatchedMember()
    member.advance(60_000)
    member.evictions.node_resumed(59_000 * MS)

    with pytest.raises(Violation, match="after 1500 of 10000 ms"):
        member.remove()


def test_a_member_has_its_rebalance_timeout_to_rejoin() -> None:
    member = WatchedMember()
    member.begin_rebalance()
    member.advance(59_990)

    with pytest.raises(Violation, match="after 59990 of 60000 ms"):
        member.remove(Departure.NOT_REJOINED)


def test_the_time_to_sync_does_not_begin_again_when_the_leader_has_synced() -> None:
    member = WatchedMember()
    member.enter(GroupState.COMPLETING_REBALANCE)
    member.advance(5_000)
    member.enter(GroupState.STABLE)
    member.advance(55_000)

    member.remove(Departure.SYNC_EXPIRED)


def test_sessions_begin_again_when_the_node_starts() -> None:
    member = WatchedMember()
    member.advance(20_000)
    member.evictions.node_started()
    member.advance(5_000)

    with pytest.raises(Violation, match="after 5000 of 10000 ms"):
        member.remove()


def test_a_member_that_left_may_go_at_any_time() -> None:
    WatchedMember().remove(Departure.LEFT)
