"""Pathologies of membership: rebalances that are too many, too long, or for nothing."""

from functools import partial
from typing import Final

from kohort.corpus.casting import Casting
from kohort.corpus.fleet import MINUTE, Fleet
from kohort.corpus.kinds.kind import Kind, Sort
from kohort.corpus.kinds.ordinary import restart_one
from kohort.corpus.makes import JAVA, KOHORT, LIBRDKAFKA, Reason
from kohort.corpus.player import Player


def stretch(fleet: Fleet, share: float, longest_min: int) -> tuple[int, int]:
    """From a share of the history on, for so many minutes, or 40 % of it if that is less."""
    begin = fleet.moment(share)
    longest = round(0.4 * (fleet.world.end - fleet.world.begin))
    return begin, begin + min(longest_min * MINUTE, longest)


def rebalance_storm(cast: Casting) -> None:
    """Something that scales by a nervous measure takes members away and brings them back."""
    fleet = cast.fleet(make=cast.make(), partitions=16)
    fleet.start(8)
    begin, end = stretch(fleet, 0.3, 40)

    def flap() -> None:
        if fleet.timeline.now >= end:
            return
        at_work = [each for each in fleet.alive if each.is_at_work]
        if at_work:
            old = fleet.chance.choice(at_work)
            old.leave()
            fleet.restart(old, fleet.chance.randrange(4_000, 12_000), host=fleet.fresh_host())
        fleet.timeline.after(fleet.chance.randrange(20_000, 45_000), flap)

    fleet.at(begin, flap)
    fleet.is_wrong("members are taken away and brought back twice a minute", begin, end)


def slow_member(cast: Casting) -> None:
    """Whenever the group rebalances, one member is in the middle of a long batch."""
    fleet = cast.fleet(has_own_names=True)
    fleet.start(5)
    begin, end = stretch(fleet, 0.25, 60)

    def hold_up() -> None:
        if fleet.timeline.now >= end:
            return
        fleet.players[2].stall(fleet.chance.randrange(50_000, 100_000))
        restart_one(fleet, -1, 6_000)
        fleet.timeline.after(fleet.chance.randrange(5, 8) * MINUTE, hold_up)

    fleet.at(begin, hold_up)
    slow = f"{fleet.group_id}-2"
    fleet.is_wrong("rejoins a minute or more after the others", begin, end, slow)


def evicted_by_poll_interval(cast: Casting) -> None:
    fleet = cast.fleet(make=KOHORT, rebalance_ms=MINUTE, has_own_names=True)
    fleet.start(4)
    begin, end = stretch(fleet, 0.3, 60)

    def overwork() -> None:
        if fleet.timeline.now >= end:
            return
        if fleet.players[1].is_at_work:
            fleet.players[1].stall(MINUTE + fleet.chance.randrange(20_000, 90_000))
        fleet.timeline.after(fleet.chance.randrange(4, 7) * MINUTE, overwork)

    fleet.at(begin, overwork)
    slow = f"{fleet.group_id}-1"
    fleet.is_wrong("works on one batch for longer than max.poll.interval.ms", begin, end, slow)


def evicted_by_session(cast: Casting) -> None:
    fleet = cast.fleet(make=JAVA, session_ms=10_000, has_own_names=True)
    fleet.start(4)
    begin, end = stretch(fleet, 0.3, 60)

    def pause() -> None:
        if fleet.timeline.now >= end:
            return
        if fleet.players[3].is_at_work:
            fleet.players[3].freeze(10_000 + fleet.chance.randrange(4_000, 25_000))
        fleet.timeline.after(fleet.chance.randrange(4, 7) * MINUTE, pause)

    fleet.at(begin, pause)
    paused = f"{fleet.group_id}-3"
    fleet.is_wrong("pauses for longer than session.timeout.ms", begin, end, paused)


def crash_loop(cast: Casting) -> None:
    """Each time it gets to a record that it cannot bear, it dies, and is started again."""
    fleet = cast.fleet(make=cast.make(), session_ms=10_000, has_own_names=True)
    fleet.start(3)
    begin, end = stretch(fleet, 0.35, 30)
    traits = fleet.traits(3)

    def live() -> None:
        if fleet.timeline.now >= end:
            fleet.launch(traits)
            return
        player = fleet.launch(traits)
        fleet.when(lambda: player.is_at_work, partial(die, player))

    def die(player: Player) -> None:
        fleet.timeline.after(fleet.chance.randrange(15_000, 40_000), player.kill)
        fleet.when(lambda: not player.is_alive, revive)

    def revive() -> None:
        fleet.timeline.after(fleet.chance.randrange(5_000, 30_000), live)

    fleet.at(begin, live)
    crashing = f"{fleet.group_id}-3"
    fleet.is_wrong("dies within a minute of every start", begin, end, crashing)


def deploy_in_a_row(cast: Casting) -> None:
    fleet = cast.fleet(make=cast.make(), assignors=("range",))
    fleet.start(6)
    for share in (0.25, 0.65):
        begin = fleet.moment(share)
        for number in range(6):
            fleet.at(begin + number * 40_000, partial(_replace_oldest, fleet))
        end = begin + 5 * 40_000 + 15_000
        fleet.is_wrong("six members are restarted one after the other", begin, end)


def _replace_oldest(fleet: Fleet) -> None:
    """Its place is taken by a process on another machine."""
    restart_one(fleet, 0, fleet.chance.randrange(6_000, 12_000), host=fleet.fresh_host())


def leader_rejoin_loop(cast: Casting) -> None:
    """The leader sees its topics change all the time, though they do not."""
    fleet = cast.fleet(make=KOHORT, assignors=("range",), has_own_names=True)
    fleet.start(4)
    begin, end = stretch(fleet, 0.3, 40)

    def rejoin() -> None:
        if fleet.timeline.now >= end:
            return
        if fleet.leader is not None:
            fleet.leader.rejoin(Reason.TOPICS_CHANGED)
        fleet.timeline.after(fleet.chance.randrange(30_000, 60_000), rejoin)

    fleet.at(begin, rejoin)
    fleet.is_wrong("the leader joins again once a minute without a change", begin, end)


def eager_cost(cast: Casting) -> None:
    """Everyone lets go of everything, and works on for long before it joins again."""
    fleet = cast.fleet(make=JAVA, partitions=96, poll_ms=20_000, commit_ms=30_000)
    fleet.start(12)
    begin, end = fleet.moment(0.2), fleet.moment(0.9)
    for turn in range(8):
        at = begin + (end - begin) * turn // 8
        fleet.at(at, partial(_replace_oldest, fleet))
    fleet.is_wrong("twelve eager members stop at every restart of one", begin, end)


def too_many_members(cast: Casting) -> None:
    fleet = cast.fleet(make=cast.make(), partitions=4, assignors=("roundrobin",))
    fleet.start(9)
    begin, end = fleet.world.begin, fleet.world.end
    fleet.is_wrong("nine members for four partitions", begin, end)


def stuck_rebalance(cast: Casting) -> None:
    """The leader's assignor hangs: everyone else has joined, and waits."""
    patience_ms = 8 * MINUTE
    fleet = cast.fleet(make=JAVA, rebalance_ms=patience_ms, has_own_names=True)
    fleet.start(4)
    begin = fleet.moment(0.35)

    def hang() -> None:
        leader = fleet.leader
        assert leader is not None
        leader.assign_ms = patience_ms + 90_000
        fleet.launch(fleet.traits(4))
        subject = leader.traits.client_id
        end = begin + patience_ms + 10_000
        fleet.is_wrong("the leader does not say who gets what", begin, end, subject)
        fleet.timeline.after(patience_ms, partial(recover, leader))

    def recover(leader: Player) -> None:
        leader.assign_ms = leader.traits.assign_ms

    fleet.at(begin, partial(fleet.when_stable, hang))


def stuck_join(cast: Casting) -> None:
    """One member works on for minutes; a newcomer waits until even the coordinator gives it up."""
    fleet = cast.fleet(make=JAVA, rebalance_ms=10 * MINUTE, has_own_names=True)
    fleet.start(3)
    begin, busy_ms = fleet.moment(0.4), 7 * MINUTE

    def wait() -> None:
        fleet.players[1].stall(busy_ms)
        fleet.launch(fleet.traits(3))

    fleet.at(begin, wait)
    hung = f"{fleet.group_id}-1"
    fleet.is_wrong("everyone waits for one member to join", begin, begin + busy_ms, hung)


def stuck_consumer(cast: Casting) -> None:
    """All members are alive and well, but none gets on with its work."""
    fleet = cast.fleet(make=LIBRDKAFKA, partitions=6)
    fleet.start(3)
    begin = fleet.moment(0.4)

    def hang() -> None:
        for player in fleet.alive:
            player.holding.hang()

    fleet.at(begin, hang)
    fleet.is_wrong("members that no longer commit, while lag grows", begin, fleet.world.end)


KINDS: Final = tuple(
    Kind(name=name, sort=Sort.PATHOLOGY, meaning=meaning, play=play)
    for name, meaning, play in (
        ("rebalance-storm", "members come and go twice a minute", rebalance_storm),
        ("slow-member", "one member holds everyone up", slow_member),
        ("evicted-by-poll-interval", "a batch takes too long", evicted_by_poll_interval),
        ("evicted-by-session-timeout", "a process pauses for too long", evicted_by_session),
        ("crash-loop", "a member dies soon after every start", crash_loop),
        ("deploy-in-a-row", "dynamic members restart one by one", deploy_in_a_row),
        ("leader-rejoin-loop", "the leader joins again and again", leader_rejoin_loop),
        ("eager-cost", "a large eager group stops for every restart", eager_cost),
        ("too-many-members", "more members than partitions", too_many_members),
        ("stuck-rebalance", "the leader never assigns", stuck_rebalance),
        ("stuck-join", "a join phase that lasts for minutes", stuck_join),
        ("stuck-consumer", "members without progress", stuck_consumer),
    )
)
