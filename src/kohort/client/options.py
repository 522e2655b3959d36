"""The consumer's options: as the application gives them, and parsed.

Names are those of Kafka. Both `session_timeout_ms=` and `"session.timeout.ms":` are accepted.
options_table lists all options.
"""

from collections.abc import Iterable
from typing import Final, TypedDict

from kohort.assignors import Assignor
from kohort.client.errors import ConfigurationError
from kohort.client.fetch.completed_fetch import Deserializer
from kohort.client.member.member_settings import MemberSettings
from kohort.client.member.member_settings import check as check_member
from kohort.client.options_table import OPTIONS, IsolationLevel, OffsetReset
from kohort.settings.option import get_option
from kohort.settings.readers import Address, BadValue
from kohort.types import GroupId, InstanceId, Millis, value

__all__ = [
    "Address",
    "GivenOptions",
    "IsolationLevel",
    "OffsetReset",
    "Options",
    "member_settings",
    "read_options",
]

_SPELLINGS: Final = {
    spelling: option
    for option in OPTIONS.values()
    for dotted in (option.name, *option.aliases)
    for spelling in (dotted, dotted.replace(".", "_"))
}
"""All accepted spellings."""


class GivenOptions(TypedDict, total=False):
    """The options as keyword arguments, for editors; OPTIONS describes them."""

    bootstrap_servers: str | Iterable[str]
    group_id: str | None
    group_instance_id: str | None
    client_id: str
    client_rack: str | None
    partition_assignment_strategy: str | Assignor | Iterable[str | Assignor]
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    max_poll_records: int
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    auto_offset_reset: str
    isolation_level: str
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    check_crcs: bool
    key_deserializer: Deserializer | None
    value_deserializer: Deserializer | None
    consumer_timeout_ms: int
    exclude_internal_topics: bool
    allow_auto_create_topics: bool
    metadata_max_age_ms: int
    request_timeout_ms: int
    default_api_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    reconnect_backoff_ms: int
    reconnect_backoff_max_ms: int
    socket_connection_setup_timeout_ms: int
    connections_max_idle_ms: int
    receive_buffer_bytes: int
    send_buffer_bytes: int
    security_protocol: str


@value
class Options:
    """The parsed options."""

    bootstrap_servers: tuple[Address, ...]
    group_id: GroupId | None
    group_instance_id: InstanceId | None
    client_id: str
    client_rack: str | None
    partition_assignment_strategy: tuple[Assignor, ...]
    session_timeout_ms: Millis
    heartbeat_interval_ms: Millis
    max_poll_interval_ms: Millis
    max_poll_records: int
    enable_auto_commit: bool
    auto_commit_interval_ms: Millis
    auto_offset_reset: OffsetReset
    isolation_level: IsolationLevel
    fetch_min_bytes: int
    fetch_max_wait_ms: Millis
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    check_crcs: bool
    key_deserializer: Deserializer | None
    value_deserializer: Deserializer | None
    consumer_timeout_ms: Millis
    exclude_internal_topics: bool
    allow_auto_create_topics: bool
    metadata_max_age_ms: Millis
    request_timeout_ms: Millis
    default_api_timeout_ms: Millis
    retry_backoff_ms: Millis
    retry_backoff_max_ms: Millis
    reconnect_backoff_ms: Millis
    reconnect_backoff_max_ms: Millis
    socket_connection_setup_timeout_ms: Millis
    connections_max_idle_ms: Millis
    receive_buffer_bytes: int
    send_buffer_bytes: int
    security_protocol: str

    @property
    def is_read_committed(self) -> bool:
        return self.isolation_level is IsolationLevel.READ_COMMITTED


def read_options(given: Iterable[tuple[str, object]]) -> Options:
    """Parse the given options; all others get their defaults."""
    values = {option.keyword: option.default for option in OPTIONS.values()}
    spelled: dict[str, str] = {}
    for spelling, given_value in given:
        try:
            option = get_option(_SPELLINGS, spelling)
            content = option.parse(given_value)
        except BadValue as error:
            raise ConfigurationError(str(error)) from None
        if option.name in spelled:
            raise ConfigurationError(
                f"{option.name} is given twice: as {spelled[option.name]} and as {spelling}"
            )
        spelled[option.name] = spelling
        values[option.keyword] = content
    options = Options(**values)
    _check(options)
    return options


def _check(options: Options) -> None:
    """Reject options that contradict each other."""
    if options.group_instance_id is not None and options.group_id is None:
        raise ConfigurationError("group.instance.id needs a group.id; set both")
    if options.fetch_max_wait_ms >= options.request_timeout_ms:
        raise ConfigurationError(
            f"fetch.max.wait.ms={options.fetch_max_wait_ms} must be lower than "
            f"request.timeout.ms={options.request_timeout_ms}"
        )
    check_member(member_settings(options))


def member_settings(options: Options) -> MemberSettings:
    return MemberSettings(
        group_id=options.group_id or GroupId(""),
        instance_id=options.group_instance_id,
        assignors=options.partition_assignment_strategy,
        client_rack=options.client_rack,
        session_timeout_ms=options.session_timeout_ms,
        heartbeat_interval_ms=options.heartbeat_interval_ms,
        max_poll_interval_ms=options.max_poll_interval_ms,
        request_timeout_ms=options.request_timeout_ms,
        default_api_timeout_ms=options.default_api_timeout_ms,
        retry_backoff_ms=options.retry_backoff_ms,
        retry_backoff_max_ms=options.retry_backoff_max_ms,
        enable_auto_commit=options.enable_auto_commit,
        auto_commit_interval_ms=options.auto_commit_interval_ms,
    )
