"""The protocol messages, one file per API key. A file is imported on the first use of its key."""

from functools import cache
from importlib import import_module
from typing import Final

from kohort.types import value
from kohort.wire.schema import schema_of

FILES: Final = (
    "k00_produce",
    "k01_fetch",
    "k02_list_offsets",
    "k03_metadata",
    "k08_offset_commit",
    "k09_offset_fetch",
    "k10_find_coordinator",
    "k11_join_group",
    "k12_heartbeat",
    "k13_leave_group",
    "k14_sync_group",
    "k15_describe_groups",
    "k16_list_groups",
    "k17_sasl_handshake",
    "k18_api_versions",
    "k19_create_topics",
    "k20_delete_topics",
    "k21_delete_records",
    "k22_init_producer_id",
    "k23_offset_for_leader_epoch",
    "k24_add_partitions_to_txn",
    "k25_add_offsets_to_txn",
    "k26_end_txn",
    "k28_txn_offset_commit",
    "k32_describe_configs",
    "k35_describe_log_dirs",
    "k36_sasl_authenticate",
    "k37_create_partitions",
    "k42_delete_groups",
    "k44_incremental_alter_configs",
    "k47_offset_delete",
    "k60_describe_cluster",
    "k68_consumer_group_heartbeat",
    "k69_consumer_group_describe",
    "k75_describe_topic_partitions",
)

_FILE_BY_KEY: Final = {int(file[1:3]): file for file in FILES}

KEYS: Final = tuple(_FILE_BY_KEY)
"""All supported API keys, in ascending order."""


@value
class Api:
    """One API: its key, its name, its two messages and their versions."""

    key: int
    name: str
    request: type
    response: type
    versions: range
    flexible_since: int | None


@cache
def find_api(key: int) -> Api | None:
    file = _FILE_BY_KEY.get(key)
    if file is None:
        return None
    module = import_module(f"{__name__}.{file}")
    name = file[4:].title().replace("_", "")
    request, response = getattr(module, f"{name}Request"), getattr(module, f"{name}Response")
    schema = schema_of(request)
    assert schema.api_key == key == schema_of(response).api_key
    return Api(
        key=key,
        name=name,
        request=request,
        response=response,
        versions=schema.versions,
        flexible_since=schema.flexible_since,
    )


def all_apis() -> tuple[Api, ...]:
    return tuple(api for key in KEYS if (api := find_api(key)) is not None)
