"""Pathologies of membership: too many rebalances, too long ones, or needless ones."""

from functools import partial
from typing import Final

from tools.histories.client_profiles import JAVA, KOHORT, LIBRDKAFKA, Reason
from tools.histories.group_factory import GroupFactory
from tools.histories.group_script import MINUTE, GroupScript
from tools.histories.scenarios.ordinary import restart_one
from tools.histories.scenarios.scenario import Category, Scenario
from tools.histories.scripted_member import ScriptedMember


def time_range(group: GroupScript, share: float, longest_min: int) -> tuple[int, int]:
    """From this share of the history, for `longest_min` minutes, but at most 40 % of it."""
    begin = group.time_at(share)
    longest = round(0.4 * (group.context.end - group.context.begin))
    return begin, begin + min(longest_min * MINUTE, longest)


def rebalance_storm(factory: GroupFactory) -> None:
    """An autoscaler without damping removes and adds members."""
    group = factory.create(client=factory.random_client(), partitions=16)
    group.start(8)
    begin, end = time_range(group, 0.3, 40)

    def flap() -> None:
        if group.scheduler.now_ms >= end:
            return
        processing = [each for each in group.alive if each.is_processing]
        if processing:
            old = group.rng.choice(processing)
            old.leave()
            group.restart(old, group.rng.randrange(4_000, 12_000), host=group.new_host())
        group.scheduler.after(group.rng.randrange(20_000, 45_000), flap)

    group.at(begin, flap)
    group.label_pathology("members are taken away and brought back twice a minute", begin, end)


def slow_member(factory: GroupFactory) -> None:
    """At every rebalance one member is processing a long batch."""
    group = factory.create(has_own_names=True)
    group.start(5)
    begin, end = time_range(group, 0.25, 60)

    def delay_join() -> None:
        if group.scheduler.now_ms >= end:
            return
        group.members[2].stall(group.rng.randrange(50_000, 100_000))
        restart_one(group, -1, 6_000)
        group.scheduler.after(group.rng.randrange(5, 8) * MINUTE, delay_join)

    group.at(begin, delay_join)
    slow = f"{group.group_id}-2"
    group.label_pathology("rejoins a minute or more after the others", begin, end, slow)


def evicted_by_poll_interval(factory: GroupFactory) -> None:
    group = factory.create(client=KOHORT, rebalance_ms=MINUTE, has_own_names=True)
    group.start(4)
    begin, end = time_range(group, 0.3, 60)

    def overwork() -> None:
        if group.scheduler.now_ms >= end:
            return
        if group.members[1].is_processing:
            group.members[1].stall(MINUTE + group.rng.randrange(20_000, 90_000))
        group.scheduler.after(group.rng.randrange(4, 7) * MINUTE, overwork)

    group.at(begin, overwork)
    slow = f"{group.group_id}-1"
    group.label_pathology(
        "works on one batch for longer than max.poll.interval.ms", begin, end, slow
    )


def evicted_by_session(factory: GroupFactory) -> None:
    group = factory.create(client=JAVA, session_ms=10_000, has_own_names=True)
    group.start(4)
    begin, end = time_range(group, 0.3, 60)

    def pause() -> None:
        if group.scheduler.now_ms >= end:
            return
        if group.members[3].is_processing:
            group.members[3].pause(10_000 + group.rng.randrange(4_000, 25_000))
        group.scheduler.after(group.rng.randrange(4, 7) * MINUTE, pause)

    group.at(begin, pause)
    paused = f"{group.group_id}-3"
    group.label_pathology("pauses for longer than session.timeout.ms", begin, end, paused)


def crash_loop(factory: GroupFactory) -> None:
    """A record crashes the member after every restart."""
    group = factory.create(client=factory.random_client(), session_ms=10_000, has_own_names=True)
    group.start(3)
    begin, end = time_range(group, 0.35, 30)
    config = group.member_config(3)

    def live() -> None:
        if group.scheduler.now_ms >= end:
            group.launch(config)
            return
        member = group.launch(config)
        group.when(lambda: member.is_processing, partial(die, member))

    def die(member: ScriptedMember) -> None:
        group.scheduler.after(group.rng.randrange(15_000, 40_000), member.kill)
        group.when(lambda: not member.is_alive, revive)

    def revive() -> None:
        group.scheduler.after(group.rng.randrange(5_000, 30_000), live)

    group.at(begin, live)
    crashing = f"{group.group_id}-3"
    group.label_pathology("dies within a minute of every start", begin, end, crashing)


def deploy_in_a_row(factory: GroupFactory) -> None:
    group = factory.create(client=factory.random_client(), assignors=("range",))
    group.start(6)
    for share in (0.25, 0.65):
        begin = group.time_at(share)
        for number in range(6):
            group.at(begin + number * 40_000, partial(_replace_oldest, group))
        end = begin + 5 * 40_000 + 15_000
        group.label_pathology("six members are restarted one after the other", begin, end)


def _replace_oldest(group: GroupScript) -> None:
    """A process on another host replaces it."""
    restart_one(group, 0, group.rng.randrange(6_000, 12_000), host=group.new_host())


def leader_rejoin_loop(factory: GroupFactory) -> None:
    """The leader rejoins for changed topic metadata, although nothing changed."""
    group = factory.create(client=KOHORT, assignors=("range",), has_own_names=True)
    group.start(4)
    begin, end = time_range(group, 0.3, 40)

    def rejoin() -> None:
        if group.scheduler.now_ms >= end:
            return
        if group.leader is not None:
            group.leader.rejoin(Reason.TOPICS_CHANGED)
        group.scheduler.after(group.rng.randrange(30_000, 60_000), rejoin)

    group.at(begin, rejoin)
    group.label_pathology("the leader joins again once a minute without a change", begin, end)


def eager_cost(factory: GroupFactory) -> None:
    """All members revoke all partitions, and rejoin only after a long batch."""
    group = factory.create(client=JAVA, partitions=96, poll_ms=20_000, commit_ms=30_000)
    group.start(12)
    begin, end = group.time_at(0.2), group.time_at(0.9)
    for index in range(8):
        at = begin + (end - begin) * index // 8
        group.at(at, partial(_replace_oldest, group))
    group.label_pathology("twelve eager members stop at every restart of one", begin, end)


def too_many_members(factory: GroupFactory) -> None:
    group = factory.create(client=factory.random_client(), partitions=4, assignors=("roundrobin",))
    group.start(9)
    begin, end = group.context.begin, group.context.end
    group.label_pathology("nine members for four partitions", begin, end)


def stuck_rebalance(factory: GroupFactory) -> None:
    """The leader's assignor hangs, and the other members wait for their assignment."""
    timeout_ms = 8 * MINUTE
    group = factory.create(client=JAVA, rebalance_ms=timeout_ms, has_own_names=True)
    group.start(4)
    begin = group.time_at(0.35)

    def hang() -> None:
        leader = group.leader
        assert leader is not None
        leader.assign_ms = timeout_ms + 90_000
        group.launch(group.member_config(4))
        subject = leader.config.client_id
        end = begin + timeout_ms + 10_000
        group.label_pathology("the leader does not say who gets what", begin, end, subject)
        group.scheduler.after(timeout_ms, partial(recover, leader))

    def recover(leader: ScriptedMember) -> None:
        leader.assign_ms = leader.config.assign_ms

    group.at(begin, partial(group.when_stable, hang))


def stuck_join(factory: GroupFactory) -> None:
    """One member processes a batch for minutes, and a new member waits for it to rejoin."""
    group = factory.create(client=JAVA, rebalance_ms=10 * MINUTE, has_own_names=True)
    group.start(3)
    begin, busy_ms = group.time_at(0.4), 7 * MINUTE

    def wait() -> None:
        group.members[1].stall(busy_ms)
        group.launch(group.member_config(3))

    group.at(begin, wait)
    hung = f"{group.group_id}-1"
    group.label_pathology("everyone waits for one member to join", begin, begin + busy_ms, hung)


def stuck_consumer(factory: GroupFactory) -> None:
    """All members send heartbeats and poll, but none makes progress."""
    group = factory.create(client=LIBRDKAFKA, partitions=6)
    group.start(3)
    begin = group.time_at(0.4)

    def hang() -> None:
        for member in group.alive:
            member.assignment.hang()

    group.at(begin, hang)
    group.label_pathology(
        "members that no longer commit, while lag grows", begin, group.context.end
    )


SCENARIOS: Final = tuple(
    Scenario(name=name, category=Category.PATHOLOGY, meaning=meaning, script=script)
    for name, meaning, script in (
        ("rebalance-storm", "members leave and join twice a minute", rebalance_storm),
        ("slow-member", "one member delays every rebalance", slow_member),
        (
            "evicted-by-poll-interval",
            "a batch takes longer than max.poll.interval.ms",
            evicted_by_poll_interval,
        ),
        (
            "evicted-by-session-timeout",
            "a process pauses longer than session.timeout.ms",
            evicted_by_session,
        ),
        ("crash-loop", "a member dies soon after every start", crash_loop),
        ("deploy-in-a-row", "dynamic members restart one by one", deploy_in_a_row),
        ("leader-rejoin-loop", "the leader rejoins once a minute", leader_rejoin_loop),
        ("eager-cost", "a large eager group stops for every restart", eager_cost),
        ("too-many-members", "more members than partitions", too_many_members),
        ("stuck-rebalance", "the leader does not send the assignment", stuck_rebalance),
        ("stuck-join", "a join phase that lasts for minutes", stuck_join),
        ("stuck-consumer", "members poll but make no progress", stuck_consumer),
    )
)
