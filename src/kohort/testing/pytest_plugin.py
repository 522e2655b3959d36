"""The pytest plugin: `pip install kohort` is enough to have it.

    def test_orders_are_billed(kohort_cluster):
        orders = kohort_cluster.topic("orders", partitions=3)
        kohort_cluster.produce(orders, ["1", "2"])

`kohort_node` is one node for all tests of the process, `kohort_cluster` has unique names on it.
`@pytest.mark.kohort(fresh=True)` gives a test its own node. With `--kohort-real HOST:PORT` the same
tests use another Kafka. A failed test shows the rebalances and the log of the node.

Other modules of Kohort are imported when a fixture is used: most test runs use none.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from kohort.testing.cluster_handle import ClusterHandle
    from kohort.testing.failure_report import NodeLog
    from kohort.testing.namespace import Namespace
    from kohort.types import Offset

_NAME: Final = "kohort"
"""Of the entry point, the marker and the option group."""

_CLOCKS: Final = ("real", "manual")

_MARKER: Final = (
    "kohort(fresh=True, settings={...}, clock='manual'): give the test a node of its own in "
    "kohort_cluster; settings are those of `kohort serve --settings`"
)

_LOG: "Final[pytest.StashKey[NodeLog]]" = pytest.StashKey()
"""Of the session, while a node runs."""

_NODE: "Final[pytest.StashKey[ClusterHandle]]" = pytest.StashKey()
"""Of the session: what `kohort_node` returns."""

_USED: "Final[pytest.StashKey[ClusterHandle]]" = pytest.StashKey()
"""Of a test: the cluster that it uses."""

_EVENTS_START: "Final[pytest.StashKey[Offset | None]]" = pytest.StashKey()
"""Of a test: where the events since its begin are."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    # The module may be named with -p or in pytest_plugins beside the entry point.
    for name in (_NAME, __name__):
        if not pluginmanager.has_plugin(name):
            pluginmanager.set_blocked(name)
    group = parser.getgroup(_NAME, "Kohort: a Kafka broker for tests")
    group.addoption(
        "--kohort-real",
        metavar="HOST:PORT",
        help="run the tests on this Kafka cluster instead of a Kohort node; tests that need a node "
        "of their own, faults or a clock are skipped",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    address = config.getoption("--kohort-real")
    if address is not None and not hasattr(config, "workerinput"):
        _check_address(address)


def _check_address(address: str) -> None:
    from kohort.admin.cluster_connection import open_cluster  # noqa: PLC0415
    from kohort.admin.errors import AdminError  # noqa: PLC0415
    from kohort.types import Millis  # noqa: PLC0415

    try:
        open_cluster(address, timeout_ms=Millis(5_000)).close()
    except AdminError as error:
        raise pytest.UsageError(f"--kohort-real {address}: {error}") from None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for marker in item.iter_markers(_NAME):
            if complaint := _find_complaint(marker):
                raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.kohort: {complaint}")


def _find_complaint(marker: pytest.Mark) -> str | None:
    """What is wrong with the arguments, if anything."""
    given = marker.kwargs
    unknown = [repr(each) for each in marker.args] + sorted(
        {*given} - {"fresh", "settings", "clock"}
    )
    if unknown:
        return f"unknown {', '.join(unknown)}; use fresh=True, settings={{...}} and clock='manual'"
    if not isinstance(given.get("fresh", True), bool):
        return f"fresh={given['fresh']!r} is not True or False"
    if not isinstance(given.get("settings", {}), Mapping):
        return f"settings={given['settings']!r} is not a mapping from setting to value"
    if given.get("clock", _CLOCKS[0]) not in _CLOCKS:
        return f"clock={given['clock']!r} is not one of {', '.join(map(repr, _CLOCKS))}"
    if given.get("fresh") is False and len(given) > 1:
        return "settings and clock need a fresh node; leave out fresh=False"
    return None


# Fixtures


@pytest.fixture(scope="session")
def kohort_node(request: pytest.FixtureRequest) -> "Iterator[ClusterHandle]":
    """One Kohort node for all tests of this process, or the cluster of `--kohort-real`.

    Tests share its topics and groups; `kohort_cluster` has unique names.
    """
    with ExitStack() as stack:
        stash = request.session.stash
        stash[_NODE] = _open_cluster(request.config, stack, stash, {})
        stack.callback(stash.__delitem__, _NODE)
        yield stash[_NODE]


@pytest.fixture
def kohort_cluster(request: pytest.FixtureRequest) -> "Iterator[Namespace]":
    """Unique names for topics and groups on `kohort_node`, removed after the test.

    With `@pytest.mark.kohort(fresh=True)` the test has a node of its own.
    """
    from kohort.testing.namespace import Namespace  # noqa: PLC0415

    item: pytest.Item = request.node
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    marker = item.get_closest_marker(_NAME)
    arguments = {} if marker is None else {**marker.kwargs}
    is_fresh = arguments.pop("fresh", bool(arguments))
    with ExitStack() as stack:
        if is_fresh:
            if request.config.getoption("--kohort-real") is not None:
                pytest.skip("needs a Kohort node of its own, and --kohort-real is given")
            node = _open_cluster(request.config, stack, request.session.stash, arguments)
        else:
            node = request.getfixturevalue("kohort_node")
        cluster = Namespace(node, f"{worker} {item.name}")
        if not is_fresh:
            stack.callback(cluster.close)
        item.stash[_USED] = cluster
        yield cluster


def _open_cluster(
    config: pytest.Config, stack: ExitStack, stash: pytest.Stash, arguments: Mapping[str, Any]
) -> "ClusterHandle":
    """The cluster of `--kohort-real`, or a new node with these arguments."""
    from kohort.testing.failure_report import NodeLog  # noqa: PLC0415
    from kohort.testing.node import Node  # noqa: PLC0415
    from kohort.testing.real_cluster import RealCluster  # noqa: PLC0415

    address = config.getoption("--kohort-real")
    if address is not None:
        real = RealCluster(address)
        stack.callback(real.disconnect)
        return real
    if _LOG not in stash:
        stash[_LOG] = NodeLog()
        stash[_LOG].start()
        stack.callback(stash.__delitem__, _LOG)
        stack.callback(stash[_LOG].stop)
    return stack.enter_context(Node(**arguments))


# What a failed test shows


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    stash = item.session.stash
    if _LOG in stash:
        stash[_LOG].clear()
    if _NODE in stash and "kohort_node" in getattr(item, "fixturenames", ()):
        from kohort.testing.failure_report import find_event_position  # noqa: PLC0415

        item.stash[_EVENTS_START] = find_event_position(stash[_NODE])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome: Any = yield
    report: pytest.TestReport = outcome.get_result()
    stash = item.session.stash
    cluster = item.stash.get(_USED, None)
    if cluster is None and "kohort_node" in getattr(item, "fixturenames", ()):
        cluster = stash.get(_NODE, None)
    if not report.failed or cluster is None:
        return
    from kohort.testing.failure_report import describe_rebalances  # noqa: PLC0415

    rebalances = describe_rebalances(cluster, item.stash.get(_EVENTS_START, None))
    log = str(stash[_LOG]) if _LOG in stash else ""
    titles = {"Rebalances": rebalances, "Log of the Kohort node": log}
    report.sections += [
        (f"{title} ({report.when})", text) for title, text in titles.items() if text
    ]
