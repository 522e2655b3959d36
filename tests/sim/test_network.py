"""Simulated links: order, faults and endpoint events."""

from random import Random

import pytest

from kohort.sim.network import Link, NetworkConditions, SimulatedNetwork
from kohort.sim.plan_generator import CALM, FOUL
from kohort.virtual_time.rng import RandomStreams
from kohort.virtual_time.scheduler import MS, Scheduler


class Endpoint:
    """A link endpoint that records data and events."""

    def __init__(self) -> None:
        self.received = b""
        self.events: list[str] = []

    def connected(self) -> None:
        self.events.append("connected")

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self) -> None:
        self.events.append("lost")


class Server:
    """Accepts links."""

    def __init__(self, endpoint: Endpoint | None) -> None:
        self.endpoint = endpoint
        self.is_reachable = True

    def accept(self, link: Link) -> Endpoint | None:  # noqa: ARG002  # as the network calls it
        return self.endpoint


class Scene:
    def __init__(
        self, conditions: NetworkConditions = CALM, *, is_listening: bool = True, seed: int = 1
    ) -> None:
        self.scheduler = Scheduler(units_per_ms=MS)
        self.node = Endpoint()
        self.server = Server(self.node if is_listening else None)
        self.network = SimulatedNetwork(
            self.scheduler, RandomStreams(seed), conditions, self.server
        )
        self.client = Endpoint()
        self.link = self.network.connect("caller", self.client)

    def wait(self, ms: int) -> None:
        self.scheduler.run(self.scheduler.now + ms * MS)


@pytest.mark.parametrize("seed", range(20))
def test_data_arrives_in_order_despite_splits_stalls_and_pauses(seed: int) -> None:
    scene = Scene(FOUL, seed=seed)
    rng = Random(seed)  # noqa: S311  # drawn again from the same seed
    sent = b""
    for number in range(40):
        piece = f"<{number}>".encode() * rng.randint(1, 20)
        sent += piece
        scene.link.send_to_server(piece)
        scene.wait(rng.randint(0, 100))
        if rng.random() < 0.2:
            scene.network.isolate("caller", rng.randint(1, 2_000))
        scene.link.to_server.pause(is_paused=rng.random() < 0.3)
    scene.link.to_server.pause(is_paused=False)

    scene.network.end_faults(CALM)
    scene.wait(60_000)

    assert scene.node.received == sent


def test_a_client_connects_before_it_receives_data() -> None:
    scene = Scene()

    scene.wait(100)
    scene.link.send_to_client(b"hello")
    scene.wait(100)

    assert scene.client.events == ["connected"]
    assert scene.client.received == b"hello"


def test_a_connection_without_a_listener_is_refused() -> None:
    scene = Scene(is_listening=False)

    scene.wait(100)

    assert scene.client.events == ["lost"]


def test_a_connection_to_a_host_without_power_gets_no_reply() -> None:
    scene = Scene()
    scene.server.is_reachable = False

    scene.wait(60_000)

    assert scene.client.events == []


def test_both_endpoints_notice_a_cut_and_data_in_flight_is_lost() -> None:
    scene = Scene()
    scene.wait(100)
    scene.link.send_to_server(b"under way")

    scene.link.cut()
    scene.wait(100)

    assert scene.node.received == b""
    assert scene.node.events == ["lost"]
    assert scene.client.events == ["connected", "lost"]


def test_no_endpoint_notices_a_silent_link() -> None:
    scene = Scene()
    scene.wait(100)

    scene.link.mute()
    scene.link.send_to_server(b"hello?")
    scene.wait(600_000)

    assert scene.node.received == b""
    assert scene.node.events == []
    assert scene.client.events == ["connected"]


def test_data_sent_before_close_arrives() -> None:
    scene = Scene()
    scene.wait(100)
    scene.link.send_to_server(b"last words")

    scene.link.close()
    scene.wait(100)

    assert scene.node.received == b"last words"
    assert scene.node.events == ["lost"]


def test_a_restarted_host_resets_unknown_connections() -> None:
    scene = Scene()
    scene.wait(100)
    scene.link.power_lost()
    scene.wait(60_000)
    assert scene.client.events == ["connected"]

    scene.link.send_to_server(b"are you there?")
    scene.wait(100)

    assert scene.client.events == ["connected", "lost"]
    assert scene.node.received == b""
