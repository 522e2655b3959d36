"""What every simulated actor uses: scheduler, random streams, network, checkers and trace."""

from kohort.sim.checker_hub import CheckerHub
from kohort.sim.client_connection import ClientConnection
from kohort.sim.network import SimulatedNetwork
from kohort.sim.process import ClientProcess
from kohort.sim.trace import Trace
from kohort.types import value
from kohort.virtual_time.rng import RandomStreams
from kohort.virtual_time.scheduler import Scheduler


@value
class SimContext:
    scheduler: Scheduler
    streams: RandomStreams
    network: SimulatedNetwork
    checkers: CheckerHub
    trace: Trace

    def connection(
        self, process: ClientProcess, owner: str, *, is_old: bool = False
    ) -> ClientConnection:
        return ClientConnection(process, self.network, self.checkers, owner=owner, is_old=is_old)
