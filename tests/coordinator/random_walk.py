"""A random sequence of requests, timers and faults, determined by a seed.

`python -m tests.coordinator.random_walk SEED STEPS` prints all records, replies, events and timers.
"""

import random
import sys

from kohort.coordinator.commands import DeleteGroups, EndTransaction, FetchOffsets, ListGroups
from kohort.coordinator.config import GroupConfig
from kohort.types import ErrorCode, GroupId, InstanceId, Millis, ProducerId
from tests.coordinator.client_crowd import PROTOCOLS, Client, Crowd

CONFIG = GroupConfig(group_max_size=6, offsets_retention_ms=Millis(1_200_000))

GROUPS = (GroupId("g1"), GroupId("g2"), GroupId("g3"))


def random_walk(seed: int, steps: int) -> Crowd:
    rng = random.Random(seed)  # noqa: S311  # a test
    crowd = Crowd.with_config(CONFIG)
    clients = [client for group_id in GROUPS for client in _clients(group_id)]
    for _ in range(steps):
        _step(rng, crowd, rng.choice(clients), clients)
    return crowd


def _clients(group_id: GroupId) -> list[Client]:
    """Rebalance timeouts are shorter than sessions, so some rebalances end without all members."""
    session, rebalance = Millis(30_000), Millis(5_000)
    return [
        Client(
            name,
            group_id,
            instance_id=InstanceId(f"i-{name}") if name in ("s", "t") else None,
            is_old=name == "old",
            session_ms=session,
            rebalance_ms=rebalance,
        )
        for name in ("a", "b", "c", "d", "old", "s", "t")
    ]


def _step(  # noqa: C901  # a flat table
    rng: random.Random, crowd: Crowd, client: Client, clients: list[Client]
) -> None:
    match rng.randrange(24):
        case 0 | 1 | 2 | 3:
            together = [each for each in clients if each.group_id == client.group_id]
            picked = rng.sample(together, rng.randint(1, len(together)))
            crowd.settle(*picked, protocols=rng.choice(sorted(PROTOCOLS)))
            for each in picked:
                crowd.heartbeat(each)
        case 4 | 5 | 6:
            crowd.join(client, rng.choice(sorted(PROTOCOLS)))
        case 7 | 8:
            crowd.sync(client)
        case 9 | 10 | 11:
            crowd.heartbeat(client)
        case 12:
            crowd.leave(client)
        case 13:
            client.restart()
        case 14 | 15:
            crowd.commit(client, crowd.offset(rng.choice(["t1", "t2"]), rng.randrange(3)))
        case 16:
            crowd.commit_simply(client.group_id)
        case 17:
            crowd.commit_in_transaction(client, ProducerId(rng.randrange(2)))
        case 18:
            command = EndTransaction(
                ticket=crowd.next_ticket(),
                producer_id=ProducerId(rng.randrange(2)),
                is_commit=rng.random() < 0.5,
            )
            crowd.send(command)
        case 19:
            crowd.send(FetchOffsets(ticket=crowd.next_ticket(), group_id=client.group_id))
            crowd.send(ListGroups(ticket=crowd.next_ticket()))
        case 20:
            crowd.send(DeleteGroups(ticket=crowd.next_ticket(), group_ids=(client.group_id,)))
        case 21 | 22:
            crowd.advance(crowd.driver.now + rng.choice([1, 500, 5_000, 5_000, 900_000]))
        case _:
            _inject_fault(rng, crowd)


def _inject_fault(rng: random.Random, crowd: Crowd) -> None:
    if rng.random() < 0.3:
        crowd.crash()
    else:
        is_broken = crowd.driver.append_error is not None
        crowd.break_log(None if is_broken else ErrorCode.KAFKA_STORAGE_ERROR)


def main() -> None:
    seed, steps = map(int, sys.argv[1:])
    driver = random_walk(seed, steps).driver
    results = (driver.records, driver.replies, driver.events, driver.timers.items())
    sys.stdout.writelines(f"{each}\n" for part in results for each in part)


if __name__ == "__main__":
    main()
