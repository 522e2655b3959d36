"""Settings of a consumer group member."""

from kohort.assignors import Assignor, RebalanceProtocol
from kohort.client.errors import ConfigurationError
from kohort.types import GroupId, InstanceId, Millis, value


@value
class MemberSettings:
    """Names and defaults are those of Kafka's consumer."""

    group_id: GroupId
    instance_id: InstanceId | None = None
    """A static member keeps its assignment until its session times out (KIP-345)."""
    assignors: tuple[Assignor, ...] = ()
    """In order of preference. Without any, the member can commit but not subscribe."""
    client_rack: str | None = None
    session_timeout_ms: Millis = Millis(45_000)
    heartbeat_interval_ms: Millis = Millis(3_000)
    max_poll_interval_ms: Millis = Millis(300_000)
    """Also the rebalance timeout: how long the coordinator waits for this member to rejoin."""
    request_timeout_ms: Millis = Millis(30_000)
    default_api_timeout_ms: Millis = Millis(60_000)
    """How long commits and offset fetches are retried before they fail."""
    retry_backoff_ms: Millis = Millis(100)
    retry_backoff_max_ms: Millis = Millis(1_000)
    enable_auto_commit: bool = True
    auto_commit_interval_ms: Millis = Millis(5_000)
    leave_on_close: bool = True
    """Whether a dynamic member sends LeaveGroup; a static one never does."""


def choose_protocol(assignors: tuple[Assignor, ...]) -> RebalanceProtocol:
    """The most advanced protocol that all assignors support: the group may choose any of them."""
    common = frozenset(RebalanceProtocol).intersection(*(each.protocols for each in assignors))
    if RebalanceProtocol.COOPERATIVE in common:
        return RebalanceProtocol.COOPERATIVE
    if RebalanceProtocol.EAGER in common:
        return RebalanceProtocol.EAGER
    names = ", ".join(each.name for each in assignors)
    raise ConfigurationError(
        f"partition.assignment.strategy: {names} support no common rebalance protocol"
    )


def check(settings: MemberSettings) -> None:
    """Reject settings that could never work."""
    if settings.heartbeat_interval_ms >= settings.session_timeout_ms:
        raise ConfigurationError(
            f"heartbeat.interval.ms={settings.heartbeat_interval_ms} must be lower than "
            f"session.timeout.ms={settings.session_timeout_ms}; use a third of it or less"
        )
    names = [each.name for each in settings.assignors]
    if len(set(names)) < len(names):
        raise ConfigurationError(
            f"partition.assignment.strategy has two assignors of one name: {', '.join(names)}"
        )
    if settings.assignors:
        choose_protocol(settings.assignors)
