"""Connections: in order or not at all."""

from random import Random

import pytest

from kohort.sim.dice import Dice
from kohort.sim.drawing import CALM, FOUL
from kohort.sim.network import Link, Network, Weather
from kohort.sim.timeline import MS, Timeline


class Ear:
    """An end of a connection that remembers what it heard."""

    def __init__(self) -> None:
        self.heard = b""
        self.events: list[str] = []

    def connected(self) -> None:
        self.events.append("connected")

    def data_received(self, data: bytes) -> None:
        self.heard += data

    def connection_lost(self) -> None:
        self.events.append("lost")


class Station:
    """Whoever is called."""

    def __init__(self, ear: Ear | None) -> None:
        self.ear = ear
        self.is_reachable = True

    def accept(self, link: Link) -> Ear | None:  # noqa: ARG002  # as the network calls it
        return self.ear


class Scene:
    def __init__(
        self, weather: Weather = CALM, *, is_listening: bool = True, seed: int = 1
    ) -> None:
        self.timeline = Timeline()
        self.node = Ear()
        self.station = Station(self.node if is_listening else None)
        self.network = Network(self.timeline, Dice(seed), weather, self.station)
        self.caller = Ear()
        self.link = self.network.connect("caller", self.caller)

    def wait(self, ms: int) -> None:
        self.timeline.run(self.timeline.now + ms * MS)


@pytest.mark.parametrize("seed", range(20))
def test_bytes_arrive_in_order_however_they_are_cut_stalled_and_paused(seed: int) -> None:
    scene = Scene(FOUL, seed=seed)
    chance = Random(seed)  # noqa: S311  # drawn again from the same seed
    sent = b""
    for number in range(40):
        piece = f"<{number}>".encode() * chance.randint(1, 20)
        sent += piece
        scene.link.call(piece)
        scene.wait(chance.randint(0, 100))
        if chance.random() < 0.2:
            scene.network.isolate("caller", chance.randint(1, 2_000))
        scene.link.to_server.pause(is_paused=chance.random() < 0.3)
    scene.link.to_server.pause(is_paused=False)

    scene.network.clear_up(CALM)
    scene.wait(60_000)

    assert scene.node.heard == sent


def test_a_connection_is_made_before_anything_is_heard() -> None:
    scene = Scene()

    scene.wait(100)
    scene.link.answer(b"hello")
    scene.wait(100)

    assert scene.caller.events == ["connected"]
    assert scene.caller.heard == b"hello"


def test_where_nobody_listens_the_caller_is_refused() -> None:
    scene = Scene(is_listening=False)

    scene.wait(100)

    assert scene.caller.events == ["lost"]


def test_where_no_machine_is_the_caller_hears_nothing() -> None:
    scene = Scene()
    scene.station.is_reachable = False

    scene.wait(60_000)

    assert scene.caller.events == []


def test_both_ends_hear_of_a_cut_and_nothing_more_arrives() -> None:
    scene = Scene()
    scene.wait(100)
    scene.link.call(b"under way")

    scene.link.cut()
    scene.wait(100)

    assert scene.node.heard == b""
    assert scene.node.events == ["lost"]
    assert scene.caller.events == ["connected", "lost"]


def test_nobody_hears_of_silence() -> None:
    scene = Scene()
    scene.wait(100)

    scene.link.mute()
    scene.link.call(b"hello?")
    scene.wait(600_000)

    assert scene.node.heard == b""
    assert scene.node.events == []
    assert scene.caller.events == ["connected"]


def test_who_hangs_up_is_heard_out() -> None:
    scene = Scene()
    scene.wait(100)
    scene.link.call(b"last words")

    scene.link.hang_up()
    scene.wait(100)

    assert scene.node.heard == b"last words"
    assert scene.node.events == ["lost"]


def test_a_machine_that_came_back_says_that_it_knows_nothing() -> None:
    scene = Scene()
    scene.wait(100)
    scene.link.power_lost()
    scene.wait(60_000)
    assert scene.caller.events == ["connected"]

    scene.link.call(b"are you there?")
    scene.wait(100)

    assert scene.caller.events == ["connected", "lost"]
    assert scene.node.heard == b""
