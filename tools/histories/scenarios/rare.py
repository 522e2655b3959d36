"""Rare scenarios: rebalance triggers that few clusters ever see."""

from functools import partial
from typing import Final

from kohort.coordinator.commands import DeleteGroups, Ticket
from kohort.coordinator.replies import Reply
from tools.histories.client_profiles import JAVA, KOHORT
from tools.histories.group_factory import GroupFactory
from tools.histories.group_script import GroupScript
from tools.histories.oracle import GroupPhase
from tools.histories.scenarios.ordinary import restart_one, stop
from tools.histories.scenarios.scenario import Category, Scenario

GROUP_MAX_SIZE: Final = 40
"""The node is restarted with this limit; no other group of the history is as large."""


def protocol_migration(factory: GroupFactory) -> None:
    """Static members restart one by one with another preferred assignor, until it is chosen."""
    group = factory.create(client=JAVA, is_static=True, assignors=("range", "roundrobin"))
    group.start(3)
    begin = group.time_at(0.4)

    reordered = ("roundrobin", "range")
    for number in range(3):
        at = begin + 60_000 * number
        group.at(at, partial(restart_one, group, 0, 10_000, assignors=reordered))


def interrupted_deploy(factory: GroupFactory) -> None:
    """A static member restarts while the leader computes the assignment."""
    group = factory.create(client=KOHORT, is_static=True)
    group.start(3)

    def scale() -> None:
        for member in group.alive:
            member.assign_ms = 4_000
        group.launch(group.member_config(3))
        group.when(lambda: group.oracle.phase is GroupPhase.SYNCING, interrupt)

    def interrupt() -> None:
        old = next(each for each in group.alive if each is not group.leader)
        old.leave()
        group.restart(old, 800)
        for member in group.alive:
            member.assign_ms = member.config.assign_ms

    group.at(group.time_at(0.5), scale)


def removed_by_admin(factory: GroupFactory) -> None:
    """An administrator removes a static member that was shut down."""
    group = factory.create(client=JAVA, is_static=True, session_ms=120_000)
    group.start(4)

    def retire() -> None:
        old = group.members[3]
        old.leave()
        assert old.config.instance_id is not None
        group.scheduler.after(20_000, partial(group.remove_by_admin, old.config.instance_id))

    group.at(group.time_at(0.5), retire)


def refused_assignment(factory: GroupFactory) -> None:
    """The coordinator cannot store the assignment, and the group rebalances again."""
    group = factory.create(client=JAVA)
    group.start(3)

    def refuse() -> None:
        group.broker.fail_next_assignment(group.group_id, group.oracle.on_assignment_append_failed)
        group.launch(group.member_config(3))

    group.at(group.time_at(0.5), refuse)


def over_capacity(factory: GroupFactory) -> None:
    """The node restarts with a lower group.max.size than this group has members."""
    group = factory.create(client=JAVA, partitions=48, commit_ms=30_000)
    group.start(GROUP_MAX_SIZE + 3)

    def restart() -> None:
        for each in group.context.groups:
            each.oracle.on_coordinator_restart(GROUP_MAX_SIZE)
        group.broker.restart(GROUP_MAX_SIZE)

    group.at(group.time_at(0.5), lambda: group.when(lambda: is_every_group_stable(group), restart))


def is_every_group_stable(group: GroupScript) -> bool:
    stable = (GroupPhase.EMPTY, GroupPhase.STABLE)
    return all(each.oracle.phase in stable for each in group.context.groups)


def deleted_group(factory: GroupFactory) -> None:
    """A stopped group is deleted."""
    group = factory.create(client=KOHORT, partitions=4)
    group.start(2)

    def delete() -> None:
        group.broker.send(request, _ignore)

    def request(ticket: Ticket) -> DeleteGroups:
        return DeleteGroups(ticket=ticket, group_ids=(group.group_id,))

    group.at(group.time_at(0.5), partial(stop, group))
    group.at(group.time_at(0.55), delete)


def _ignore(_reply: Reply) -> None:
    """The script does not need the response."""


SCENARIOS: Final = tuple(
    Scenario(name=name, category=Category.RARE, meaning=meaning, script=script)
    for name, meaning, script in (
        ("protocol-migration", "rolling restart that changes the assignor", protocol_migration),
        ("interrupted-deploy", "a static restart during an assignment", interrupted_deploy),
        ("removed-by-admin", "an administrator removes a static member", removed_by_admin),
        ("refused-assignment", "the coordinator cannot store the assignment", refused_assignment),
        ("over-capacity", "a restart with a lower group.max.size", over_capacity),
        ("deleted-group", "a group is deleted with its offsets", deleted_group),
    )
)
