"""Generations only increase, and only requests of the current generation are accepted.

A generation is *reported* in a JoinGroup response, and *formed* when a SyncGroup response has its
assignment. A crash may undo a reported generation, never a formed one. Requests of a generation
that ended before they arrived must be rejected, and so must requests of a fenced member id.
"""

from typing import Any

from kohort.sim.checkers import Violation
from kohort.sim.wire_tap import Exchange

_RULE = "generations"


class _Group:
    def __init__(self) -> None:
        self.reported = -1
        self.formed = -1
        self.members: dict[int, dict[str, None]] = {}
        """The members of each generation, from JoinGroup responses."""
        self.instances: dict[str, tuple[str, int]] = {}
        """The latest member id of each static member, and its generation."""

    @property
    def floor(self) -> int:
        return max(self.reported, self.formed)


class GenerationFencing:
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
            group.reported = -1
            group.instances = {
                instance: latest
                for instance, latest in group.instances.items()
                if latest[1] <= group.formed
            }

    def forgotten(self) -> None:
        """Formed generations may be lost too, and formed again by others."""
        for group in self._groups.values():
            group.reported = group.formed = -1
            group.instances.clear()

    def request_arrived(self, exchange: Exchange, group_id: str, instance_id: str | None) -> None:
        """Remember the current generation when a request arrives."""
        group = self._get(group_id)
        latest = group.instances.get(instance_id) if instance_id is not None else None
        exchange.snapshot = (group.floor, latest[0] if latest is not None else None)

    def accepted(
        self, exchange: Exchange, group_id: str, generation: int, member_id: str, what: str
    ) -> None:
        """The node has accepted the request."""
        if self._is_loading or generation < 0:
            return
        floor, latest_id = exchange.snapshot
        if generation < floor:
            raise Violation(_RULE, f"{what} of {generation} accepted in {floor}, by {member_id}")
        if latest_id is not None and latest_id != member_id:
            raise Violation(_RULE, f"{what} of {member_id} accepted, fenced by {latest_id}")
        members = self._get(group_id).members.get(generation)
        if members is not None and member_id not in members:
            raise Violation(_RULE, f"{what} of {member_id} accepted, not in {generation}")

    def joined(self, request: Any, response: Any) -> None:
        group = self._get(request.group_id)
        generation = response.generation_id
        if generation < group.floor:
            what = f"{request.group_id} went from {group.floor} to {generation}"
            raise Violation(_RULE, what)
        group.reported = generation
        group.members.setdefault(generation, {})[response.member_id] = None
        if request.group_instance_id is not None:
            group.instances[request.group_instance_id] = (response.member_id, generation)

    def synced(self, request: Any) -> None:
        group = self._get(request.group_id)
        group.formed = max(group.formed, request.generation_id)
