"""What seldom happens: triggers that few clusters see in a year, so that they can be seen here."""

from functools import partial
from typing import Final

from kohort.coordinator.commands import DeleteGroups, Ticket
from kohort.coordinator.replies import Reply
from kohort.corpus.casting import Casting
from kohort.corpus.fleet import Fleet
from kohort.corpus.kinds.kind import Kind, Sort
from kohort.corpus.kinds.ordinary import restart_one, stop
from kohort.corpus.makes import JAVA, KOHORT
from kohort.corpus.witness import Phase

GROUP_MAX_SIZE: Final = 40
"""What the node is restarted with; no other group of the corpus is as large."""


def protocol_migration(cast: Casting) -> None:
    """Static members restart with another preference, one by one, until the choice turns."""
    fleet = cast.fleet(make=JAVA, is_static=True, assignors=("range", "roundrobin"))
    fleet.start(3)
    begin = fleet.moment(0.4)

    turned = ("roundrobin", "range")
    for number in range(3):
        at = begin + 60_000 * number
        fleet.at(at, partial(restart_one, fleet, 0, 10_000, assignors=turned))


def interrupted_deploy(cast: Casting) -> None:
    """An instance restarts at the very moment when the leader deals out."""
    fleet = cast.fleet(make=KOHORT, is_static=True)
    fleet.start(3)

    def scale() -> None:
        for player in fleet.alive:
            player.assign_ms = 4_000
        fleet.launch(fleet.traits(3))
        fleet.when(lambda: fleet.witness.phase is Phase.SYNCING, interrupt)

    def interrupt() -> None:
        old = next(each for each in fleet.alive if each is not fleet.leader)
        old.leave()
        fleet.restart(old, 800)
        for player in fleet.alive:
            player.assign_ms = player.traits.assign_ms

    fleet.at(fleet.moment(0.5), scale)


def removed_by_admin(cast: Casting) -> None:
    """A static member is shut down for good, and an administrator tidies up behind it."""
    fleet = cast.fleet(make=JAVA, is_static=True, session_ms=120_000)
    fleet.start(4)

    def retire() -> None:
        old = fleet.players[3]
        old.leave()
        assert old.traits.instance_id is not None
        fleet.timeline.after(20_000, partial(fleet.remove_by_admin, old.traits.instance_id))

    fleet.at(fleet.moment(0.5), retire)


def refused_assignment(cast: Casting) -> None:
    """The coordinator cannot keep what the leader has dealt out, and the group begins anew."""
    fleet = cast.fleet(make=JAVA)
    fleet.start(3)

    def refuse() -> None:
        fleet.house.refuse_assignment(fleet.group_id, fleet.witness.assignment_is_refused)
        fleet.launch(fleet.traits(3))

    fleet.at(fleet.moment(0.5), refuse)


def over_capacity(cast: Casting) -> None:
    """The node restarts with a lower group.max.size than this group has members."""
    fleet = cast.fleet(make=JAVA, partitions=48, commit_ms=30_000)
    fleet.start(GROUP_MAX_SIZE + 3)

    def restart() -> None:
        for each in fleet.world.everyone:
            each.witness.coordinator_restarts(GROUP_MAX_SIZE)
        fleet.house.restart(GROUP_MAX_SIZE)

    fleet.at(fleet.moment(0.5), lambda: fleet.when(lambda: is_all_quiet(fleet), restart))


def is_all_quiet(fleet: Fleet) -> bool:
    quiet = (Phase.EMPTY, Phase.STABLE)
    return all(each.witness.phase in quiet for each in fleet.world.everyone)


def deleted_group(cast: Casting) -> None:
    """A group that nobody needs any more is deleted, offsets and all."""
    fleet = cast.fleet(make=KOHORT, partitions=4)
    fleet.start(2)

    def delete() -> None:
        fleet.house.ask(request, _ignore)

    def request(ticket: Ticket) -> DeleteGroups:
        return DeleteGroups(ticket=ticket, group_ids=(fleet.group_id,))

    fleet.at(fleet.moment(0.5), partial(stop, fleet))
    fleet.at(fleet.moment(0.55), delete)


def _ignore(_reply: Reply) -> None:
    """Nobody waits to hear of it."""


KINDS: Final = tuple(
    Kind(name=name, sort=Sort.RARE, meaning=meaning, play=play)
    for name, meaning, play in (
        ("protocol-migration", "restarts that turn the choice of assignor", protocol_migration),
        ("interrupted-deploy", "a static restart during an assignment", interrupted_deploy),
        ("removed-by-admin", "a static member is removed by name", removed_by_admin),
        ("refused-assignment", "an assignment that cannot be kept", refused_assignment),
        ("over-capacity", "a restart with a lower group.max.size", over_capacity),
        ("deleted-group", "a group is deleted with its offsets", deleted_group),
    )
)
