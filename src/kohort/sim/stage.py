"""What every actor needs of the world it acts in."""

from kohort.sim.court import Court
from kohort.sim.dice import Dice
from kohort.sim.life import Life
from kohort.sim.network import Network
from kohort.sim.phone import Phone
from kohort.sim.timeline import Timeline
from kohort.sim.trace import Trace
from kohort.types import value


@value
class Stage:
    timeline: Timeline
    dice: Dice
    network: Network
    court: Court
    trace: Trace

    def phone(self, life: Life, owner: str, *, is_old: bool = False) -> Phone:
        return Phone(life, self.network, self.court, owner=owner, client_id=owner, is_old=is_old)
