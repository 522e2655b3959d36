"""What a member of a consumer group is told once, when it is made."""

from kohort.client.assignors import Assignor, RebalanceProtocol
from kohort.client.errors import BadOption
from kohort.types import GroupId, InstanceId, Millis, value


@value
class MemberSettings:
    """Names and defaults are Kafka's."""

    group_id: GroupId
    instance_id: InstanceId | None = None
    """A static member keeps its place in the group for as long as its session lasts (KIP-345)."""
    assignors: tuple[Assignor, ...] = ()
    """In order of preference. Without any, a member commits but cannot subscribe."""
    client_rack: str | None = None
    session_timeout_ms: Millis = Millis(45_000)
    heartbeat_interval_ms: Millis = Millis(3_000)
    max_poll_interval_ms: Millis = Millis(300_000)
    """Also how long the coordinator waits for this member to rejoin."""
    request_timeout_ms: Millis = Millis(30_000)
    default_api_timeout_ms: Millis = Millis(60_000)
    """How long a question of the program is tried again before it is answered with an error."""
    retry_backoff_ms: Millis = Millis(100)
    retry_backoff_max_ms: Millis = Millis(1_000)
    enable_auto_commit: bool = True
    auto_commit_interval_ms: Millis = Millis(5_000)
    leave_on_close: bool = True
    """Whether a dynamic member says goodbye; a static one never does."""


def choose_protocol(assignors: tuple[Assignor, ...]) -> RebalanceProtocol:
    """The most advanced one that all of them are safe with, as the group may choose any of them."""
    common = frozenset(RebalanceProtocol).intersection(*(each.protocols for each in assignors))
    if RebalanceProtocol.COOPERATIVE in common:
        return RebalanceProtocol.COOPERATIVE
    if RebalanceProtocol.EAGER in common:
        return RebalanceProtocol.EAGER
    names = ", ".join(each.name for each in assignors)
    raise BadOption(f"the assignors {names} have no way to rebalance in common")


def check(settings: MemberSettings) -> None:
    """Refuse what would look right and never work."""
    if settings.heartbeat_interval_ms >= settings.session_timeout_ms:
        raise BadOption(
            f"a heartbeat every {settings.heartbeat_interval_ms} ms cannot keep a session of "
            f"{settings.session_timeout_ms} ms: heartbeat.interval.ms must be the smaller, "
            "and a third of session.timeout.ms at most"
        )
    names = [each.name for each in settings.assignors]
    if len(set(names)) < len(names):
        raise BadOption(f"two assignors have one name: {', '.join(names)}")
    if settings.assignors:
        choose_protocol(settings.assignors)
