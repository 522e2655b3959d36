"""Every checker is shown a guilty sample beside an innocent one."""

from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from kohort.client.topic_partition import TopicPartition
from kohort.sim.checkers.answers import Answers
from kohort.sim.checkers.commits import Commits, Kept
from kohort.sim.checkers.dealings import Dealings
from kohort.sim.checkers.deliveries import Deliveries, Worker
from kohort.sim.checkers.generations import Generations
from kohort.sim.checkers.liveness import find_lags
from kohort.sim.checkers.ownership import Belief, Ownership
from kohort.sim.checkers.records import Records
from kohort.sim.checkers.violation import Violation
from kohort.sim.tap import Exchange
from kohort.types import Partition, Topic
from kohort.wire.embedded import Assignment, TopicPartitions, encode_assignment

T0 = TopicPartition(Topic("t"), Partition(0))
T1 = TopicPartition(Topic("t"), Partition(1))


class Healthy(NamedTuple):
    """As much of a connection as a checker looks at."""

    name: str = "m0.1"
    is_healthy: bool = True


LINK: Any = Healthy()


# Ownership


def belief(*held: TopicPartition, by: int = 1, instance_id: str | None = None) -> Belief:
    return Belief(group="g", instance_id=instance_id, held=dict.fromkeys(held, by))


def test_two_may_not_hold_a_partition_by_one_generation() -> None:
    ownership = Ownership()
    ownership.believes("m0", belief(T0))
    ownership.believes("m1", belief(T1))

    with pytest.raises(Violation, match="both hold t-0"):
        ownership.believes("m1", belief(T0, T1))


def test_who_does_not_know_yet_that_a_partition_is_lost_is_excused() -> None:
    ownership = Ownership()
    ownership.believes("m0", belief(T0, by=1))

    ownership.believes("m1", belief(T0, by=2))
    ownership.ended("m1")
    ownership.believes("m0", belief(T0, by=2))


def test_two_lives_of_a_static_member_may_overlap() -> None:
    ownership = Ownership()
    ownership.believes("m0/1", belief(T0, instance_id="i"))

    ownership.believes("m0/2", belief(T0, instance_id="i"))


def test_what_is_held_by_a_forgotten_generation_is_no_claim_against_those_it_is_formed_with() -> (
    None
):
    ownership = Ownership()
    ownership.believes("m0", belief(T0, T1))
    ownership.forgotten()
    ownership.believes("m0", belief(T0))

    ownership.believes("m1", belief(T0))

    with pytest.raises(Violation, match="m2 and m1 both hold"):
        ownership.believes("m2", belief(T0))


# Generations


def exchange(**facts: Any) -> Exchange:
    return Exchange(LINK, 1, 0, 0, SimpleNamespace(**facts))


def joined(generation: int, member_id: str = "m", instance_id: str | None = None) -> Any:
    question = SimpleNamespace(group_id="g", group_instance_id=instance_id)
    return question, SimpleNamespace(generation_id=generation, member_id=member_id)


def synced(generation: int) -> Any:
    return SimpleNamespace(group_id="g", generation_id=generation)


def started(*told: Any) -> Generations:
    generations = Generations()
    generations.node_loaded()
    for each in told:
        generations.joined(*each)
    return generations


def test_a_generation_does_not_go_back() -> None:
    generations = started(joined(4), joined(4, "other"), joined(5))

    with pytest.raises(Violation, match="went from 5 to 4"):
        generations.joined(*joined(4))


def test_a_crash_undoes_what_was_told_and_not_what_was_formed() -> None:
    generations = started(joined(4))
    generations.synced(synced(4))
    generations.joined(*joined(5))
    generations.node_ended()
    generations.node_loaded()

    generations.joined(*joined(4, "other"))

    with pytest.raises(Violation, match="went from 4 to 3"):
        generations.joined(*joined(3))


def test_an_overtaken_generation_is_refused() -> None:
    generations = started(joined(4))
    early, late = exchange(), exchange()
    generations.heard(early, "g", None)
    generations.joined(*joined(5))
    generations.heard(late, "g", None)

    generations.accepted(early, "g", 4, "m", "a commit")

    with pytest.raises(Violation, match="a commit of 4 accepted in 5"):
        generations.accepted(late, "g", 4, "m", "a commit")


def test_a_fenced_instance_is_refused() -> None:
    generations = started(joined(4, "old", "i"), joined(4, "new", "i"))
    said = exchange()
    generations.heard(said, "g", "i")

    generations.accepted(said, "g", 4, "new", "a commit")

    with pytest.raises(Violation, match="fenced by new"):
        generations.accepted(said, "g", 4, "old", "a commit")


def test_a_stranger_is_refused() -> None:
    generations = started(joined(4))
    said = exchange()
    generations.heard(said, "g", None)

    with pytest.raises(Violation, match="not in 4"):
        generations.accepted(said, "g", 4, "stranger", "a heartbeat")


# Commits


def commits_after(*kept: tuple[int, str]) -> Commits:
    """Offsets with their writers, each acknowledged."""
    commits = Commits(lambda *_: None)
    for order, (offset, member_id) in enumerate(kept):
        commits.arrived("g", T0, Kept(order=order, offset=offset, writer=(1, member_id)))
        commits.accepted("g", T0, order)
    return commits


def test_the_last_acknowledged_commit_is_shown() -> None:
    commits = commits_after((5, "m"), (7, "m"))

    commits.shown("g", T0, 7, 7)

    with pytest.raises(Violation, match="is shown as 5, and must be 7"):
        commits.shown("g", T0, 5, 7)


def test_a_commit_without_an_answer_may_be_shown_and_then_stays() -> None:
    commits = commits_after((5, "m"))
    commits.arrived("g", T0, Kept(order=9, offset=8, writer=(1, "m")))

    commits.shown("g", T0, 5, 5)
    commits.shown("g", T0, 8, 5)

    with pytest.raises(Violation, match="is shown as 5, and must be 8"):
        commits.shown("g", T0, 5, 8)


def test_a_refused_commit_is_never_shown() -> None:
    commits = commits_after((5, "m"))
    commits.arrived("g", T0, Kept(order=9, offset=8, writer=(1, "m")))

    commits.refused("g", T0, 9)

    with pytest.raises(Violation, match="is shown as 8"):
        commits.shown("g", T0, 8, 5)


def test_nobody_moves_behind_what_another_has_committed() -> None:
    commits_after((5, "m"), (7, "m"), (6, "m"))

    with pytest.raises(Violation, match="moved from 7"):
        commits_after((5, "m"), (7, "m"), (6, "other"))


def test_who_was_given_a_partition_later_may_move_behind_who_had_it_before() -> None:
    commits = commits_after()
    commits.arrived("g", T0, Kept(order=1, offset=7, writer=(6, "missed"), dealt=3))
    commits.accepted("g", T0, 1)

    commits.arrived("g", T0, Kept(order=2, offset=6, writer=(6, "owner"), dealt=5))
    commits.accepted("g", T0, 2)

    commits.arrived("g", T0, Kept(order=3, offset=4, writer=(6, "missed"), dealt=3))
    with pytest.raises(Violation, match="moved from 6"):
        commits.accepted("g", T0, 3)


def test_the_last_generation_that_dealt_a_partition_to_a_member_is_known() -> None:
    dealings = Dealings()
    mine = Assignment(
        assigned_partitions=(TopicPartitions(topic=Topic("t"), partitions=(T0.partition,)),)
    )
    dealings.told("g", "m", 3, encode_assignment(mine))

    dealings.told("g", "m", 4, b"")

    assert dealings.find("g", "m", T0) == 3
    assert dealings.find("g", "m", T1) == dealings.find("g", "other", T0) == -1
    dealings.forgotten()
    assert dealings.find("g", "m", T0) == -1


def test_what_a_node_without_syncs_has_forgotten_may_be_anything_it_once_knew() -> None:
    commits = commits_after((5, "m"), (7, "m"))

    commits.forgotten()
    commits.shown("g", T0, 5, -1)

    with pytest.raises(Violation, match="is shown as 6"):
        commits.shown("g", T0, 6, 5)


# Records


def records() -> Records:
    return Records(lambda _: None, lambda text: text.startswith("unique"))


def test_an_acknowledged_record_is_where_it_was_said_to_be() -> None:
    seen = records()
    seen.acknowledged(T0, 0, ["a", "b"], 1, is_synced=True)

    seen.fetched(T0, 0, [(0, "a"), (1, "b")], 2)

    with pytest.raises(Violation, match="@1 was b, promised, and is c"):
        seen.fetched(T0, 0, [(0, "a"), (1, "c")], 2)


def test_offsets_have_no_gaps() -> None:
    with pytest.raises(Violation, match="has 3 where 2 should be"):
        records().fetched(T0, 1, [(1, "b"), (3, "d")], 1)


@pytest.mark.parametrize(("begin", "end"), [(0, 1), (1, 2)])
def test_a_promised_record_is_never_beyond_the_log(begin: int, end: int) -> None:
    seen = records()
    seen.acknowledged(T0, 0, ["a", "b"], 1, is_synced=True)
    seen.begins(T0, 0)
    seen.ends(T0, 2)

    def look() -> None:
        seen.begins(T0, begin)
        seen.ends(T0, end)

    with pytest.raises(Violation, match="was promised"):
        look()


def test_what_was_not_synced_may_be_lost_with_the_power_and_only_then() -> None:
    seen = records()
    seen.acknowledged(T0, 0, ["a"], 1, is_synced=False)
    seen.fetched(T0, 0, [(0, "a")], 2)

    seen.power_lost(3, is_all_lost=False)
    seen.acknowledged(T0, 0, ["b"], 4, is_synced=True)

    assert seen.promised(T0) == {}, "who has read the first may never see the second"
    with pytest.raises(Violation, match="@0 was b, promised, and is c"):
        seen.acknowledged(T0, 0, ["c"], 5, is_synced=True)


def test_a_reader_goes_astray_only_where_records_were_lost() -> None:
    seen = records()
    with pytest.raises(Violation, match="out of range, and nothing was lost"):
        seen.out_of_range(T0, 5)
    with pytest.raises(Violation, match="forgot a producer"):
        seen.sequence_lost(T0)

    seen.power_lost(1, is_all_lost=True)

    seen.out_of_range(T0, 5)
    seen.sequence_lost(T0)


def test_what_an_idempotent_producer_sends_is_there_once() -> None:
    seen = records()
    seen.fetched(T0, 0, [(0, "plain"), (1, "plain"), (2, "unique")], 1)

    with pytest.raises(Violation, match="holds unique at 2 and at 3"):
        seen.fetched(T0, 3, [(3, "unique")], 1)


# Deliveries


def worker(generation: int = 1, member_id: str = "m") -> Worker:
    return Worker(process="m0/1", group="g", generation=generation, member_id=member_id)


def deliveries(*, is_orderly: bool = False) -> Deliveries:
    return Deliveries(lambda _: {0: "a", 1: "b"}, is_orderly=is_orderly)


def test_a_commit_covers_only_what_was_processed() -> None:
    seen = deliveries()
    seen.processed(worker(), T0, 0, "a")

    seen.committed("g", T0, 1, 1, "m")

    with pytest.raises(Violation, match=r"1 .b. was not processed"):
        seen.committed("g", T0, 2, 1, "m")


def test_a_settled_record_is_not_taken_again_by_one_who_should_know() -> None:
    seen = deliveries()
    seen.processed(worker(), T0, 0, "a")
    seen.committed("g", T0, 1, 1, "m")

    seen.taken(worker(0, "zombie"), T0, 0, "a")
    seen.taken(worker(2, "next"), T0, 1, "b")

    with pytest.raises(Violation, match="again, and it was committed"):
        seen.taken(worker(2, "next"), T0, 0, "a")


def test_what_was_rightly_moved_back_is_taken_again() -> None:
    seen = deliveries()
    seen.processed(worker(), T0, 0, "a")
    seen.committed("g", T0, 1, 1, "m")

    seen.moved_back("g", T0, 0)

    seen.taken(worker(2, "next"), T0, 0, "a")


def test_in_an_orderly_run_nothing_is_taken_twice() -> None:
    seen = deliveries(is_orderly=True)
    seen.taken(worker(), T0, 0, "a")
    seen.processed(worker(), T0, 0, "a")

    with pytest.raises(Violation, match="nothing went wrong"):
        seen.taken(worker(2, "next"), T0, 0, "a")


def test_every_promised_record_is_processed_in_the_end() -> None:
    seen = deliveries()
    seen.processed(worker(), T0, 0, "a")
    with pytest.raises(Violation, match="t-0@1 was never processed"):
        seen.check_end("g", T0)

    seen.processed(worker(), T0, 1, "b")

    seen.check_end("g", T0)


# Liveness


def test_what_is_not_committed_to_its_end_is_a_lag() -> None:
    seen, commits = records(), commits_after((1, "m"))
    seen.acknowledged(T0, 0, ["a"], 1, is_synced=True)
    assert list(find_lags(commits, seen, deliveries(), {"g": [T0, T1]})) == []

    seen.acknowledged(T0, 1, ["b"], 1, is_synced=True)

    assert list(find_lags(commits, seen, deliveries(), {"g": [T0]})) == ["g/t-0 at 1 of 2"]


# Answers


def test_an_answer_that_nobody_waits_for_is_noticed() -> None:
    answers = Answers()
    answers.asked(LINK, 1, 0)
    answers.answered(LINK, 1)

    with pytest.raises(Violation, match="had asked nothing"):
        answers.answered(LINK, 1)


def test_answers_keep_the_order_of_their_questions() -> None:
    answers = Answers()
    answers.asked(LINK, 1, 0)
    answers.asked(LINK, 2, 0)

    with pytest.raises(Violation, match="told 2, when it was 1's turn"):
        answers.answered(LINK, 2)


def test_a_question_on_a_living_connection_does_not_wait_for_ever() -> None:
    answers = Answers()
    answers.asked(LINK, 1, 100)
    answers.check_end(200, 1_000)

    with pytest.raises(Violation, match="has waited for 1 since 100 ms"):
        answers.check_end(2_000, 1_000)
