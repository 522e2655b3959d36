"""The consumer's options as a program gives them and as they are in force.

The names are the ones people know from Kafka and its clients. An option may be written
`session_timeout_ms=` or `"session.timeout.ms":`; what there is stands in options_table.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final, TypedDict

from kohort.client.assignors import Assignor
from kohort.client.errors import BadOption
from kohort.client.fetching.parcel import Deserializer
from kohort.client.member.settings import MemberSettings
from kohort.client.member.settings import check as check_member
from kohort.client.options_table import (
    OPTIONS,
    Address,
    IsolationLevel,
    OffsetReset,
    Option,
)
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

_NAMES: Final = {
    spelling: option.name
    for option in OPTIONS.values()
    for dotted in (option.name, *option.aliases)
    for spelling in (dotted, dotted.replace(".", "_"))
}
"""Every way to write an option."""


class GivenOptions(TypedDict, total=False):
    """The options as keywords, so that an editor knows them; OPTIONS says what they mean."""

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
    """The options in force, by their keywords."""

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
    def is_committed_only(self) -> bool:
        return self.isolation_level is IsolationLevel.READ_COMMITTED


def read_options(given: Iterable[tuple[str, object]]) -> Options:
    """The options in force where these were given, under any of their spellings."""
    values = {option.keyword: option.default for option in OPTIONS.values()}
    spelled: dict[str, str] = {}
    for spelling, content in given:
        option = _find(spelling)
        if option.name in spelled:
            raise BadOption(f"{option.name} is given twice: as {spelled[option.name]}, {spelling}")
        spelled[option.name] = spelling
        values[option.keyword] = _read(option, content)
    options = Options(**values)
    _check(options)
    return options


def _find(spelling: str) -> Option:
    name = _NAMES.get(spelling)
    if name is None:
        near = get_close_matches(spelling, _NAMES, 1, 0.5)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise BadOption(f"there is no option {spelling}{hint}")
    return OPTIONS[name]


def _read(option: Option, given: object) -> object:
    try:
        return option.read(given)
    except ValueError as error:
        shown = f"{option.name}={given!r}"
        raise BadOption(f"{shown}: {error}; it takes {option.kind}") from None


def _check(options: Options) -> None:
    """Refuse what is right by itself and cannot be together."""
    if options.group_instance_id is not None and options.group_id is None:
        raise BadOption("group.instance.id needs a group.id")
    if options.fetch_max_wait_ms >= options.request_timeout_ms:
        raise BadOption(
            f"fetch.max.wait.ms={options.fetch_max_wait_ms} leaves a broker no time to answer: "
            f"it must be less than request.timeout.ms={options.request_timeout_ms}"
        )
    check_member(member_settings(options))


def member_settings(options: Options) -> MemberSettings:
    """What concerns the member of a group."""
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
