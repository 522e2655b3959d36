"""One iteration of the event loop: the order of its effects, and what an internal error costs."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import kohort
from kohort.coordinator.coordinator import Coordinator
from kohort.events.internal_topics import CONSUMER_OFFSETS, KOHORT_EVENTS
from kohort.log.partition import PartitionLog
from kohort.log.sync_queue import PendingSync
from kohort.node.broker import Address
from kohort.node.connection import Connection
from kohort.node.handlers import k16_list_groups
from kohort.node.runtime import InconsistentState, Runtime
from kohort.node.server import NodeFailed
from kohort.node.syncer import Syncer
from kohort.wire.api.k16_list_groups import ListGroupsRequest
from kohort.wire.api.k18_api_versions import ApiVersionsRequest
from kohort.wire.envelope import encode_request
from tests.node.broker_harness import BrokerHarness, fetch_request
from tests.node.fake_transport import FakeTransport, RecordingLoop
from tests.node.group_setup import AT_ONCE, commit
from tests.node.raw_client import Disconnected, RawClient, join_request

MEMBER = "m"


class NoDisk:
    def start(self, files: Sequence[PendingSync]) -> None: ...


class Recorder(FakeTransport):
    def __init__(self, name: str, effects: list[str]) -> None:
        super().__init__()
        self._name = name
        self._effects = effects

    def write(self, data: bytes) -> None:
        self._effects.append(f"respond to {self._name}")
        super().write(data)


@pytest.fixture
def effects(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Appends, applies and requests to sync, in order; transports add the responses."""
    effects: list[str] = []
    right_append, right_made = PartitionLog.append_trusted, PartitionLog.append_trusted_batches
    right_apply = Coordinator.apply_all

    def append_trusted(self: PartitionLog, *given: object) -> object:
        effects.append(f"append to {self.topic}")
        return right_append(self, *given)  # type: ignore[arg-type]  # as they came

    def append_trusted_batches(self: PartitionLog, *given: object) -> object:
        effects.append(f"append to {self.topic}")
        return right_made(self, *given)  # type: ignore[arg-type]  # as they came

    def apply_all(self: Coordinator, records: list[object]) -> None:
        effects.append("apply")
        right_apply(self, records)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(PartitionLog, "append_trusted", append_trusted)
    monkeypatch.setattr(PartitionLog, "append_trusted_batches", append_trusted_batches)
    monkeypatch.setattr(Coordinator, "apply_all", apply_all)
    monkeypatch.setattr(Syncer, "end_iteration", lambda *_: effects.append("request a sync"))
    return effects


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[BrokerHarness]:
    harness = BrokerHarness(tmp_path, AT_ONCE)
    harness.create("t")
    yield harness
    harness.close()


class Client:
    def __init__(self, door: RecordingLoop, name: str, effects: list[str]) -> None:
        self._door = door
        self.transport = Recorder(name, effects)
        connection = door.connect(self.transport, "127.0.0.1", 1)
        assert connection is not None
        self.connection: Connection = connection

    def send(self, *bodies: tuple[object, int]) -> None:
        """All in one piece; they are handled by the next iteration."""
        for number, (body, version) in enumerate(bodies):
            self.connection.feed(encode_request(body, version, number, "c"))


def test_an_iteration_appends_then_applies_then_completes_fetches_then_sends_then_writes_events(
    harness: BrokerHarness, effects: list[str]
) -> None:
    door = RecordingLoop(harness)
    harness.broker.syncer = Syncer(NoDisk())
    reader = Client(door, "fetch", effects)
    reader.send((fetch_request(0, CONSUMER_OFFSETS), 12))
    door.iterate([reader.connection])
    member = Client(door, "join", effects)
    member.send((join_request("g", instance=MEMBER), 9))
    admin = Client(door, "list", effects)
    admin.send((ListGroupsRequest(), 4))
    effects.clear()

    door.iterate([member.connection, admin.connection])

    assert effects == [
        f"append to {CONSUMER_OFFSETS}",
        "apply",
        "respond to list",
        "respond to fetch",
        f"append to {KOHORT_EVENTS}",
        "request a sync",
    ]


def test_a_request_behind_a_completed_fetch_is_handled_in_the_next_iteration(
    harness: BrokerHarness,
) -> None:
    door = RecordingLoop(harness)
    reader = Client(door, "reader", [])
    reader.send((fetch_request(0, CONSUMER_OFFSETS), 12), (ListGroupsRequest(), 4))
    door.iterate([reader.connection])
    commit(harness, "g", "t", 0)
    handled_before = len(door.taken)

    door.iterate()
    handled_with_the_response = len(door.taken)
    has_more_work = door.iterate()

    assert (handled_before, handled_with_the_response, len(door.taken)) == (1, 1, 2)
    assert not has_more_work


def test_large_responses_of_one_iteration_are_bounded(
    harness: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = RecordingLoop(harness)
    clients = [Client(door, "client", []) for _ in range(5)]
    for client in clients:
        client.send((ApiVersionsRequest(), 0))
    monkeypatch.setattr("kohort.node.loop._LARGE_BYTES_MAX", -1)

    has_more_work = door.iterate([client.connection for client in clients])
    assert door.taken == []
    assert has_more_work

    monkeypatch.undo()
    door.iterate()
    assert len(door.taken) == 5


def test_a_large_response_that_cannot_be_sent_yet_delays_no_other_connection(
    harness: BrokerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = RecordingLoop(harness)
    monkeypatch.setattr("kohort.node.loop._LARGE_BYTES_MAX", 1000)
    door.count_large_response(5000)  # of a connection whose earlier request is still parked
    other = Client(door, "other", [])
    other.send((ApiVersionsRequest(), 0))

    door.iterate([other.connection])

    assert len(door.taken) == 1
    assert other.transport.written


# Internal errors


@pytest.fixture
def node() -> Iterator[kohort.Node]:
    node = kohort.Node(settings={"group.initial.rebalance.delay.ms": 0}, metrics="127.0.0.1:0")
    node.start()
    yield node
    if node.failure is None:
        node.stop()


def connect(node: kohort.Node) -> RawClient:
    host, port = node.bootstrap_servers.split(":")
    return RawClient(Address(host=host, port=int(port)))


def test_an_internal_error_in_a_request_closes_its_connection_and_no_other(
    node: kohort.Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def handle(*_: object) -> None:
        raise KeyError(3)

    with connect(node) as guilty, connect(node) as other:
        other.ask(ListGroupsRequest(), 4)
        monkeypatch.setattr("kohort.node.dispatch._handlers", {16: handle})
        with pytest.raises(Disconnected):
            guilty.ask(ListGroupsRequest(), 4)

        assert other.ask(ApiVersionsRequest(), 0).error_code == 0

    assert "internal-error" in caplog.text
    assert "Traceback" in caplog.text


def test_an_internal_error_in_a_response_closes_its_connection_and_no_other(
    node: kohort.Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(node) as guilty, connect(node) as other:
        other.ask(ListGroupsRequest(), 4)
        monkeypatch.setattr(k16_list_groups, "ListGroupsResponse", None)
        with pytest.raises(Disconnected):
            guilty.ask(ListGroupsRequest(), 4)

        assert other.ask(ApiVersionsRequest(), 0).error_code == 0


def test_an_internal_error_while_state_is_stored_stops_the_node_and_says_what_to_report(
    node: kohort.Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def append(*_: object, **__: object) -> None:
        raise InconsistentState("KeyError: 3") from KeyError(3)

    monkeypatch.setattr(Runtime, "_append", append)
    with connect(node) as client, pytest.raises((Disconnected, ConnectionError)):
        client.ask(join_request("g", instance=MEMBER), 9)

    with pytest.raises(NodeFailed, match=r"internal error \(KeyError: 3\).*bug in Kohort.*report"):
        node.stop()
    assert "stopped-by-bug" in caplog.text
