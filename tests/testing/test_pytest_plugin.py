"""The pytest plugin, in test runs of its own."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

import kohort
from kohort.testing import failure_report, namespace, node
from tests.apache.shared import SharedKafka
from tests.testing.entry_point import PLUGIN, add_entry_point

pytest_plugins = ["pytester"]

LOADED = (failure_report, namespace, node)
"""A test run in this process forgets the modules that it imports; these are imported before."""

USES_A_CLUSTER = """
    def test_orders(kohort_cluster):
        orders = kohort_cluster.topic("orders", partitions=2)
        kohort_cluster.produce(orders, ["1", "2"])
        assert [record.value for record in kohort_cluster.records(orders)] == [b"1", b"2"]
"""

REBALANCES_AND_FAILS = """
    import kohort

    def test_earlier(kohort_cluster):
        join(kohort_cluster, "earlier")

    def test_billing(kohort_cluster):
        join(kohort_cluster, "billing")
        assert False, "on purpose"

    def join(cluster, group):
        topic = cluster.topic("orders", partitions=2)
        with kohort.Consumer(
            bootstrap_servers=cluster.bootstrap_servers,
            group_id=cluster.group(group),
            client_id="worker",
        ) as consumer:
            consumer.subscribe([topic])
            while not consumer.assignment():
                consumer.poll(timeout_ms=10)
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    """Warnings are errors, so that fixtures leave nothing open."""
    # The test run around this one may have imported the plugin already.
    warnings = ["-W", "error", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return pytester.runpytest("-p", PLUGIN, "-p", "no:cacheprovider", *warnings, *arguments)


@pytest.fixture(scope="module")
def other_cluster() -> Iterator[str]:
    with kohort.Node() as cluster:
        yield cluster.bootstrap_servers


@pytest.fixture(params=["kohort", "apache"])
def any_cluster(request: pytest.FixtureRequest) -> str:
    if request.param == "kohort":
        address: str = request.getfixturevalue("other_cluster")
        return address
    kafka: SharedKafka = request.getfixturevalue("apache_kafka")
    return kafka.bootstrap_servers


# Fixtures


def test_a_test_has_topics_and_records(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(USES_A_CLUSTER)

    run(pytester).assert_outcomes(passed=1)


def test_tests_share_a_node_and_leave_no_topics(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.parametrize("number", range(3))
        def test_names(kohort_cluster, kohort_node, number):
            assert kohort_cluster.bootstrap_servers == kohort_node.bootstrap_servers
            orders = kohort_cluster.topic("orders")
            assert [*kohort_node.topics()] == [orders]
            assert kohort_cluster.group().startswith(f"test-names-{number}-")
    """)

    run(pytester).assert_outcomes(passed=3)


def test_a_fault_ends_with_its_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_one(kohort_cluster):
            kohort_cluster.faults.error("CreateTopics", "POLICY_VIOLATION")

        def test_two(kohort_cluster):
            kohort_cluster.topic("orders")
        """
    )

    run(pytester).assert_outcomes(passed=2)


def test_a_marked_test_has_a_node_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.kohort(fresh=True)
        def test_fresh(kohort_cluster, kohort_node):
            kohort_node.create_topic("shared")
            assert kohort_cluster.topics() == {}

        @pytest.mark.kohort(settings={"num.partitions": 5, "auto.create.topics.enable": True})
        class TestSettings:
            def test_settings_need_a_fresh_node(self, kohort_cluster, kohort_node):
                assert kohort_cluster.bootstrap_servers != kohort_node.bootstrap_servers

            @pytest.mark.kohort(fresh=False)
            def test_the_closest_marker_counts(self, kohort_cluster, kohort_node):
                assert kohort_cluster.bootstrap_servers == kohort_node.bootstrap_servers
    """)

    run(pytester).assert_outcomes(passed=3)


def test_an_unknown_setting_is_an_error_of_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.kohort(settings={"num.partitons": 5})
        def test_settings(kohort_cluster):
            pass
    """)

    result = run(pytester)

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*num.partitons*num.partitions*"])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("frehs=True", "unknown frehs; use fresh=True, settings={...} and clock='manual'"),
        ("True", "unknown True; use fresh=True, settings={...} and clock='manual'"),
        ("fresh=1", "fresh=1 is not True or False"),
        ("settings=['a']", "settings=['a'] is not a mapping from setting to value"),
        ("clock='fast'", "clock='fast' is not one of 'real', 'manual'"),
        ("fresh=False, clock='manual'", "settings and clock need a fresh node*"),
    ],
)
def test_wrong_arguments_of_the_marker_are_a_usage_error(
    pytester: pytest.Pytester, arguments: str, complaint: str
) -> None:
    pytester.makepyfile(f"""
        import pytest

        @pytest.mark.kohort({arguments})
        def test_marked(kohort_cluster):
            pass
    """)

    result = run(pytester)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    shown = complaint.replace("[", "[[]")
    result.stderr.fnmatch_lines([f"ERROR: *::test_marked: @pytest.mark.kohort: {shown}"])


def test_the_marker_is_registered(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.kohort
        def test_marked(kohort_cluster):
            pass
    """)

    run(pytester, "--strict-markers").assert_outcomes(passed=1)


# Failures


def test_a_failed_test_shows_the_rebalances_of_its_groups(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(REBALANCES_AND_FAILS)

    result = run(pytester)

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*- Rebalances (call) -*",
            "group test-billing-*-billing",
            "  *Z worker joined; generation 1 of 1 member, after *",
            "    worker: none -> test-billing-*-orders 0-1",
            '  *Z worker left ("the consumer is being closed"); no member was left, after *',
            "    worker: left",
        ]
    )
    result.stdout.no_fnmatch_line("group test-earlier*")


def test_a_failed_test_shows_the_log_of_the_node_since_it_began(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile("""
        import socket

        def send(kohort_node, frame):
            host, _, port = kohort_node.bootstrap_servers.rpartition(":")
            with socket.create_connection((host, int(port)), timeout=10) as connection:
                connection.sendall(frame)
                assert connection.recv(1) == b""

        def test_earlier(kohort_node):
            send(kohort_node, b"\\x7f\\xff\\xff\\xff")

        def test_malformed(kohort_node):
            send(kohort_node, b"\\xff\\xff\\xff\\xff")
            assert False, "on purpose"
    """)

    result = run(pytester, "--show-capture=no")
    assert "Log of the Kohort node" not in result.stdout.str()
    result = run(pytester, "-p", "no:logging")

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*- Log of the Kohort node (call) -*", "* WARNING connection-closed peer=* -1 is not *"]
    )
    assert result.stdout.str().count("connection-closed") == 1


def test_a_failed_test_without_a_cluster_shows_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        def test_uses_it(kohort_cluster):
            pass

        def test_other():
            assert False
    """)

    result = run(pytester)

    result.assert_outcomes(passed=1, failed=1)
    assert "Kohort node" not in result.stdout.str()
    assert "Rebalances" not in result.stdout.str()


# A real Kafka


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_same_tests_run_on_a_real_kafka(
    pytester: pytest.Pytester, any_cluster: str, workers: str
) -> None:
    pytester.makepyfile(
        USES_A_CLUSTER
        + f"""
    def test_address(kohort_cluster, kohort_node):
        assert kohort_cluster.bootstrap_servers == "{any_cluster}"
        assert kohort_node.bootstrap_servers == "{any_cluster}"
    """
    )

    run(pytester, "--kohort-real", any_cluster, "-n", workers).assert_outcomes(passed=2)


def test_a_wait_that_fails_on_a_real_kafka_says_what_is_missing(
    pytester: pytest.Pytester, any_cluster: str
) -> None:
    pytester.makepyfile("""
        def test_billing(kohort_cluster):
            group = kohort_cluster.group("billing")
            kohort_cluster.commit(group, {(kohort_cluster.topic(), 0): 0})
            kohort_cluster.wait_for(group, state="Empty", lag=0)
            kohort_cluster.wait_for(group, members=1, timeout=0.2)
    """)

    result = run(pytester, "--kohort-real", any_cluster)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*WaitTimeout: not within 200 ms: * has 0 members, 1 was expected*"]
    )
    assert "Log of the Kohort node" not in result.stdout.str()


def test_tests_that_need_a_kohort_node_are_skipped_on_a_real_kafka(
    pytester: pytest.Pytester, other_cluster: str
) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.kohort(fresh=True)
        def test_fresh(kohort_cluster):
            assert False

        @pytest.mark.kohort(clock="manual")
        def test_manual_clock(kohort_cluster):
            assert False

        def test_faults(kohort_node):
            kohort_node.faults

        def test_clock(kohort_node):
            kohort_node.clock
    """)

    result = run(pytester, "--kohort-real", other_cluster, "-rs")

    result.assert_outcomes(skipped=4)
    result.stdout.fnmatch_lines(
        [
            "SKIPPED*needs a Kohort node of its own, and --kohort-real is given",
            "SKIPPED*faults need a Kohort node, and this is a real Kafka cluster",
            "SKIPPED*the clock of a real Kafka cluster cannot be moved",
        ]
    )


@pytest.mark.parametrize(
    ("address", "complaint"),
    [("nowhere", "invalid bootstrap servers: *"), ("127.0.0.1:1", "no broker answered at *")],
)
def test_a_bad_address_is_a_usage_error(
    pytester: pytest.Pytester, address: str, complaint: str
) -> None:
    pytester.makepyfile(USES_A_CLUSTER)

    result = run(pytester, "--kohort-real", address)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: --kohort-real {address}: {complaint}"])


# Other plugins


def test_each_worker_of_xdist_has_a_node(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest

        @pytest.mark.parametrize("number", range(6))
        def test_names(kohort_cluster, worker_id, tmp_path_factory, number):
            assert kohort_cluster.topic().startswith(f"{worker_id}-test-names-{number}-")
            seen = tmp_path_factory.getbasetemp().parent / f"{worker_id}-{number}"
            seen.write_text(kohort_cluster.bootstrap_servers)
    """)

    result = run(pytester, "-n", "2", "--dist", "each", f"--basetemp={pytester.path / 'seen'}")

    result.assert_outcomes(passed=12)
    nodes = {
        worker: {file.read_text("utf-8") for file in (pytester.path / "seen").glob(f"{worker}-*")}
        for worker in ("gw0", "gw1")
    }
    assert [len(each) for each in nodes.values()] == [1, 1]
    assert nodes["gw0"] != nodes["gw1"]


def test_a_failure_in_a_worker_of_xdist_shows_its_rebalances(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(REBALANCES_AND_FAILS)

    result = run(pytester, "-n", "1")

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*- Rebalances (call) -*", "group gw0-test-billing-*-billing"])


def test_an_async_test_uses_the_fixture(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import asyncio
        import pytest

        @pytest.mark.anyio
        @pytest.mark.parametrize("anyio_backend", ["asyncio"])
        async def test_orders(kohort_cluster, anyio_backend):
            topic = kohort_cluster.topic()
            await asyncio.to_thread(kohort_cluster.produce, topic, ["1"])
            assert len(kohort_cluster.records(topic)) == 1
    """)

    run(pytester).assert_outcomes(passed=1)


def test_the_plugin_may_be_named_twice(pytester: pytest.Pytester) -> None:
    add_entry_point(pytester.path)
    pytester.makepyfile(USES_A_CLUSTER)
    pytester.makeconftest(f"pytest_plugins = ['{PLUGIN}']")

    for arguments in ([], ["-p", PLUGIN], ["-p", "kohort"]):
        result = pytester.runpytest_subprocess("-W", "error", *arguments)
        result.assert_outcomes(passed=1)


def test_the_plugin_can_be_switched_off(pytester: pytest.Pytester) -> None:
    add_entry_point(pytester.path)
    pytester.makepyfile(USES_A_CLUSTER)

    result = pytester.runpytest_subprocess("-p", "no:kohort")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*fixture 'kohort_cluster' not found"])


def test_the_plugin_imports_nothing_that_a_fixture_needs() -> None:
    program = (
        "import sys, pytest; before = {*sys.modules}; import kohort.testing.pytest_plugin;"
        "print(*sorted({*sys.modules} - before))"
    )

    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert printed.stdout.split() == [
        "kohort",
        "kohort.lazy_names",
        "kohort.testing",
        "kohort.testing.pytest_plugin",
    ]
