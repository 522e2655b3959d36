"""Generations only go forward, and only the present one is listened to.

A generation is *told* when a join is answered with it, and *formed* when an assignment of it is
handed out. A crash may undo one that was told, never one that was formed: the group then goes on
from the last formed one. What a member says in a generation that was overtaken before its words
arrived must be refused, and so must what it says under an id that somebody else has taken over.
"""

from typing import Any

from kohort.sim.checkers.violation import Violation
from kohort.sim.tap import Exchange

_RULE = "generations"


class _Group:
    def __init__(self) -> None:
        self.told = -1
        self.formed = -1
        self.members: dict[int, dict[str, None]] = {}
        """Who was told each generation, in any life of the node."""
        self.instances: dict[str, tuple[str, int]] = {}
        """The latest id of each static member, and the generation in which it was told."""

    @property
    def floor(self) -> int:
        return max(self.told, self.formed)


class Generations:
    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}
        self._is_loading = True

    def _get(self, group_id: str) -> _Group:
        return self._groups.setdefault(group_id, _Group())

    def node_loaded(self) -> None:
        self._is_loading = False

    def node_ended(self) -> None:
        self._is_loading = True
        for group in self._groups.values():
            group.told = -1
            group.instances = {
                instance: latest
                for instance, latest in group.instances.items()
                if latest[1] <= group.formed
            }

    def forgotten(self) -> None:
        """Formed generations may be lost too, and formed again by others."""
        for group in self._groups.values():
            group.told = group.formed = -1
            group.instances.clear()

    def heard(self, exchange: Exchange, group_id: str, instance_id: str | None) -> None:
        """Something arrives that is said in a generation: what was the present one just then?"""
        group = self._get(group_id)
        latest = group.instances.get(instance_id) if instance_id is not None else None
        exchange.moment = (group.floor, latest[0] if latest is not None else None)

    def accepted(
        self, exchange: Exchange, group_id: str, generation: int, member_id: str, what: str
    ) -> None:
        """It was not refused."""
        if self._is_loading or generation < 0:
            return
        floor, latest_id = exchange.moment
        if generation < floor:
            raise Violation(_RULE, f"{what} of {generation} accepted in {floor}, by {member_id}")
        if latest_id is not None and latest_id != member_id:
            raise Violation(_RULE, f"{what} of {member_id} accepted, fenced by {latest_id}")
        members = self._get(group_id).members.get(generation)
        if members is not None and member_id not in members:
            raise Violation(_RULE, f"{what} of {member_id} accepted, not in {generation}")

    def joined(self, question: Any, answer: Any) -> None:
        group = self._get(question.group_id)
        generation = answer.generation_id
        if generation < group.floor:
            what = f"{question.group_id} went from {group.floor} to {generation}"
            raise Violation(_RULE, what)
        group.told = generation
        group.members.setdefault(generation, {})[answer.member_id] = None
        if question.group_instance_id is not None:
            group.instances[question.group_instance_id] = (answer.member_id, generation)

    def synced(self, question: Any) -> None:
        group = self._get(question.group_id)
        group.formed = max(group.formed, question.generation_id)
