"""Kohort's own consumer. Kohort has no producer and no public admin client."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import kohort
from kohort import errors
from kohort.client.options import GivenOptions
from kohort.types import Offset
from tests.contract.clients.client_library import (
    Admin,
    CommittedOffset,
    ConsumedRecord,
    Limitation,
    MemberOptions,
    NotSupported,
    NoValidOffset,
    ProducerRecord,
    RequestRejected,
    TopicAndPartition,
    not_supported,
)
from tests.contract.clients.python_member import (
    PythonMember,
    RebalanceRecorder,
    consumer_options,
)

_POLL_MS = 20

T = TypeVar("T")


def _ask(call: Callable[[], T]) -> T:
    """Call the library, and translate its errors."""
    try:
        return call()
    except errors.InvalidOffsetError as error:
        raise NoValidOffset(str(error)) from error
    except errors.FencedInstanceIdError as error:
        raise RequestRejected("FENCED_INSTANCE_ID", str(error)) from error
    except (errors.GroupRejectedError, errors.BrokerResponseError) as error:
        raise RequestRejected(error.code.name, str(error)) from error
    except errors.CommitFailedError as error:
        # The library does not report which error code the removed member received.
        raise RequestRejected("UNKNOWN_MEMBER_ID", str(error)) from error


class _Listener(RebalanceRecorder, kohort.ConsumerRebalanceListener):
    pass


class KohortMember(PythonMember):
    partition_type = kohort.TopicPartition

    def __init__(self, bootstrap_servers: str, options: MemberOptions) -> None:
        if options.protocol == "consumer":
            assert "group_protocol" not in GivenOptions.__annotations__, "use it"
            raise NotSupported("group_protocol")
        self._listener = _Listener()
        self._consumer = kohort.Consumer(
            **consumer_options(bootstrap_servers, options),
            partition_assignment_strategy=options.assignors,
            retry_backoff_ms=20,
        )
        self.subscribe_from(options)

    def _ask(self, call: Callable[[], T]) -> T:
        return _ask(call)

    def poll(self) -> list[ConsumedRecord]:
        polled = _ask(lambda: self._consumer.poll(_POLL_MS))
        return [_to_consumed(record) for records in polled.values() for record in records]

    def commit(self, to_commit: Mapping[TopicAndPartition, CommittedOffset] | None = None) -> None:
        if to_commit is None:
            _ask(self._consumer.commit)
            return
        positions = {
            self._at(tp): kohort.OffsetAndMetadata(
                offset=Offset(committed.offset),
                metadata=committed.metadata,
                leader_epoch=-1 if committed.leader_epoch is None else committed.leader_epoch,
            )
            for tp, committed in to_commit.items()
        }
        _ask(lambda: self._consumer.commit(positions))

    def committed(self, tp: TopicAndPartition) -> CommittedOffset | None:
        found = _ask(lambda: self._consumer.committed(self._at(tp)))
        if found is None:
            return None
        return CommittedOffset(
            offset=found.offset,
            metadata=found.metadata,
            leader_epoch=None if found.leader_epoch < 0 else found.leader_epoch,
        )

    def close(self) -> None:
        self._consumer.close()


def _to_consumed(record: kohort.ConsumerRecord) -> ConsumedRecord:
    return ConsumedRecord(
        tp=TopicAndPartition(record.topic, record.partition),
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=tuple((name, text or b"") for name, text in record.headers),
        timestamp_ms=record.timestamp,
    )


class KohortLibrary:
    name = "kohort.Consumer"
    version = "of this repository"
    limitations: Mapping[str, Limitation] = {
        "producing": Limitation(reason="Kohort has no producer of its own."),
        "administration": Limitation(reason="Kohort has no administration client of its own."),
        "consumer-protocol": Limitation(reason="It has only the classic group protocol."),
    }

    def join(self, bootstrap_servers: str, options: MemberOptions) -> KohortMember:
        return KohortMember(bootstrap_servers, options)

    def administer(self, _bootstrap_servers: str, /) -> Admin:
        raise not_supported(kohort, "Admin")

    def produce(
        self,
        _bootstrap_servers: str,
        _topic: str,
        _records: Sequence[ProducerRecord],
        /,
        **_options: Any,
    ) -> list[int]:
        raise not_supported(kohort, "Producer")

    def produce_in_transactions(
        self, _bootstrap_servers: str, _topic: str, /, **_values: bytes
    ) -> None:
        raise not_supported(kohort, "Producer")
