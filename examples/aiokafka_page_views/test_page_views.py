"""The service runs in the event loop of the test. Calls that block for long run in a thread."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import pytest
from page_views import ViewStore, count_views, make_consumer

from kohort.testing import GroupSnapshot, Namespace

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Deployment:
    """A topic, a group and a database, which instances of the service share."""

    def __init__(self, cluster: Namespace, database: Path) -> None:
        self.cluster = cluster
        self.database = f"{database}"
        self.topic = cluster.topic("views", partitions=4)
        self.group = cluster.group("page-views")

    @asynccontextmanager
    async def service(self, client_id: str = "page-views") -> AsyncIterator[None]:
        consumer = make_consumer(
            self.topic,
            bootstrap_servers=self.cluster.bootstrap_servers,
            group_id=self.group,
            client_id=client_id,
            # A member learns of a rebalance with its next heartbeat.
            heartbeat_interval_ms=100,
        )
        with closing(ViewStore(self.database)) as store:
            task = asyncio.create_task(count_views(consumer, store))
            try:
                yield
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def wait_for(self, **conditions: Any) -> GroupSnapshot:
        return await asyncio.to_thread(self.cluster.wait_for, self.group, **conditions)

    def view(self, *pages: str) -> None:
        self.cluster.produce(self.topic, pages)

    def counts(self) -> dict[str, int]:
        with closing(ViewStore(self.database)) as store:
            return store.counts()


@pytest.fixture
def deployment(kohort_cluster: Namespace, tmp_path: Path) -> Deployment:
    return Deployment(kohort_cluster, tmp_path / "views.db")


async def test_two_instances_share_the_partitions(deployment: Deployment) -> None:
    async with deployment.service("first"), deployment.service("second"):
        group = await deployment.wait_for(members=2, stable=True)
        assert [len(member.assignment) for member in group.members] == [2, 2]
        deployment.view(*["/"] * 20, *["/about"] * 10)
        await deployment.wait_for(lag=0)

    assert deployment.counts() == {"/": 20, "/about": 10}


async def test_a_view_that_is_read_again_is_counted_once(deployment: Deployment) -> None:
    faults = deployment.cluster.faults
    deployment.view(*["/"] * 20)

    async with deployment.service("expired"):
        with faults.drop("OffsetCommit", group=deployment.group) as commits:
            await asyncio.to_thread(commits.wait)
            faults.expire_session(deployment.group, "expired")
        await deployment.wait_for(members=1, stable=True, lag=0)

    assert deployment.counts() == {"/": 20}


async def test_the_service_rejoins_when_its_session_has_expired(deployment: Deployment) -> None:
    async with deployment.service("expired"):
        before = await deployment.wait_for(members=1, stable=True)
        deployment.cluster.faults.expire_session(deployment.group, "expired")
        after = await deployment.wait_for(members=1, stable=True)
        assert after.generation != before.generation
        deployment.view("/")
        await deployment.wait_for(lag=0)

    assert deployment.counts() == {"/": 1}


async def test_the_service_starts_although_its_first_assignment_is_lost(
    deployment: Deployment,
) -> None:
    deployment.view("/", "/about")

    with deployment.cluster.faults.lose_sync_answer(deployment.group) as lost:
        async with deployment.service():
            await deployment.wait_for(members=1, stable=True, lag=0)

    assert lost.count == 1
    assert deployment.counts() == {"/": 1, "/about": 1}
