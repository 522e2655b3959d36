"""The rules of faults: which requests they match, which of these are chosen, and what is done.

Nothing is carried out here: `fault_table` does that.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from kohort.node.control import request_scope
from kohort.node.control.errors import ControlError
from kohort.node.dispatch import API_NAMES
from kohort.node.topics import Topics
from kohort.types import ErrorCode, value

COORDINATOR_APIS: Final = frozenset(request_scope.GROUPS) - {10}
"""Requests to the coordinator of a group; FindCoordinator goes to any broker."""


# What is done with a chosen request


@value
class AnswerError:
    """Answer with the error instead of handling the request."""

    error: ErrorCode
    error_by_api: Mapping[int, ErrorCode]
    """Other errors for some of the APIs."""


@value
class Delay:
    """Handle the request later."""

    seconds: float


@value
class Drop:
    """Close the connection, before the request is handled or in place of its response."""

    is_after: bool


@value
class Silence:
    """Send no response, whether the request is handled or not. The connection stays open."""

    is_after: bool


@value
class Truncate:
    """Send the first bytes of the response, then close the connection."""

    size: int


@value
class FillDisk:
    """Appends fail as on a full disk."""


@value
class SlowSync:
    """Every sync takes longer."""

    seconds: float


RequestAction: TypeAlias = AnswerError | Delay | Drop | Silence | Truncate
FaultAction: TypeAlias = RequestAction | FillDisk | SlowSync


@value
class RequestMatch:
    """Which requests a rule is about. None matches all."""

    apis: frozenset[int]
    client_id: str | None = None
    group: str | None = None
    member: str | None = None
    topic: str | None = None
    is_of_leader: bool = False
    """Only requests of the member that leads its group."""

    def check(self) -> None:
        """Raises `ControlError` if an API of the rule cannot match."""
        for name, asked, apis in (
            ("group", self.group, request_scope.GROUPS),
            ("member", self.member, request_scope.MEMBERS),
            ("topic", self.topic, request_scope.TOPICS),
        ):
            if asked is None:
                continue
            wrong = [API_NAMES[key] for key in sorted(self.apis) if key not in apis]
            if wrong:
                possible = ", ".join(API_NAMES[key] for key in apis)
                raise ControlError(
                    f"{name}={asked} never matches {', '.join(wrong)}, whose requests name no"
                    f" {name}; the APIs that do are: {possible}"
                )

    def matches(
        self,
        api_key: int,
        client_id: str,
        body: Any,
        topics: Topics,
        find_leader: Callable[[str], str | None],
    ) -> bool:
        if api_key not in self.apis or self.client_id not in (None, client_id):
            return False
        if self.group is not None and self.group not in request_scope.find_groups(api_key, body):
            return False
        if self.member is not None and self.member not in request_scope.find_members(api_key, body):
            return False
        if self.is_of_leader and body.member_id != find_leader(body.group_id):
            return False
        if self.topic is None:
            return True
        named = request_scope.find_topics(api_key, body, topics)
        return named is None or self.topic in named


class FaultRule:
    """A rule, and how often it has matched and acted."""

    def __init__(
        self,
        rule_id: str,
        action: FaultAction,
        description: Mapping[str, Any],
        *,
        match: RequestMatch | None = None,
        nth: int | None = None,
        times: int | None = None,
    ) -> None:
        """A disk fault has no `match`. `description` is a JSON object."""
        self.rule_id = rule_id
        self.action = action
        self.match = match
        self.is_active = True
        self.count = 0
        """How often it has acted."""
        self._description = description
        self._nth = nth
        self._times = times
        self._matched = 0
        self._watchers: list[tuple[int, Callable[[], None]]] = []

    @property
    def name(self) -> str:
        """For messages."""
        return f"fault {self.rule_id} ({self._description['action']})"

    def describe(self) -> dict[str, Any]:
        counts = {"matched": self._matched, "count": self.count}
        return {"id": self.rule_id, **self._description, **counts}

    def choose(self) -> bool:
        """A request matches: whether it is one of those that the rule acts on."""
        self._matched += 1
        if self._nth is not None:
            return self._matched == self._nth
        return self._times is None or self._matched <= self._times

    def note(self) -> None:
        """The rule has acted."""
        self.count += 1
        self._notify()

    def deactivate(self) -> None:
        self.is_active = False
        self._notify()

    def watch(self, count: int, reached: Callable[[], None]) -> None:
        """Call back when the rule has acted that often, or is removed."""
        self._watchers.append((count, reached))
        self._notify()

    def _notify(self) -> None:
        due = [each for each in self._watchers if not self.is_active or each[0] <= self.count]
        self._watchers = [each for each in self._watchers if each not in due]
        for _, reached in due:
            reached()
