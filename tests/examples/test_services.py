"""The services in examples/ and their tests.

The tests pass as a user runs them. They fail if the service has a bug, or if the test itself does
not wait or has no fault.
"""

import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.testing.entry_point import add_entry_point

EXAMPLES = Path(__file__).parents[2] / "examples"

SERVICES = {
    "confluent_payments": 5,
    "aiokafka_page_views": 4,
    "kafka_python_invoices": 4,
    "faststream_shipping": 3,
}
"""How many tests each one has."""

TIMEOUT_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of one file of an example, and the tests that fail then."""

    title: str
    file: str
    before: str
    after: str
    failing: tuple[str, ...]


CHANGES = [
    Change(
        title="payments: commit orders that could not be stored",
        file="confluent_payments/payments.py",
        before="self._store.add(orders)\n                self._commit()",
        after="try: self._store.add(orders)\n                finally: self._commit()",
        failing=("test_an_order_is_not_lost_if_the_database_refuses_it",),
    ),
    Change(
        title="payments: pay an order again",
        file="confluent_payments/payments.py",
        before="ON CONFLICT DO NOTHING",
        after="ON CONFLICT DO UPDATE SET amount = amount + excluded.amount",
        failing=("test_an_order_is_paid_once_if_the_service_is_killed_before_it_commits",),
    ),
    Change(
        title="payments: the test does not wait for both members",
        file="confluent_payments/test_payments.py",
        before="kohort_cluster.wait_for(group, members=2, stable=True, assigned=4)",
        after="",
        failing=("test_the_other_instance_continues_when_one_is_killed",),
    ),
    Change(
        title="page views: count views again",
        file="aiokafka_page_views/page_views.py",
        before=" if record.offset >= start",
        after="",
        failing=("test_a_view_that_is_read_again_is_counted_once",),
    ),
    Change(
        title="page views: the test waits only until the group exists",
        file="aiokafka_page_views/test_page_views.py",
        before="deployment.wait_for(members=2, stable=True)",
        after="deployment.wait_for()",
        failing=("test_two_instances_share_the_partitions",),
    ),
    Change(
        title="invoices: do not wait for acknowledgements",
        file="kafka_python_invoices/invoices.py",
        before="each.get(timeout=ACKNOWLEDGED_WITHIN_S)",
        after="pass",
        failing=("test_an_order_is_not_committed_if_its_invoice_is_refused",),
    ),
    Change(
        title="invoices: the test has no fault",
        file="kafka_python_invoices/test_invoices.py",
        before='faults.error("Produce", "MESSAGE_TOO_LARGE", topic=deployment.topics.invoices),',
        after="",
        failing=("test_an_order_is_not_committed_if_its_invoice_is_refused",),
    ),
    Change(
        title="shipping: commit orders whose handler has failed",
        file="faststream_shipping/shipping.py",
        before="ack_policy=AckPolicy.NACK_ON_ERROR",
        after="ack_policy=AckPolicy.ACK",
        failing=(
            "test_an_order_is_not_lost_if_its_shipment_is_refused",
            "test_an_order_is_not_lost_if_the_carrier_fails",
        ),
    ),
    Change(
        title="shipping: the test has no fault",
        file="faststream_shipping/test_shipping.py",
        before='topic="shipments", times=1',
        after='topic="orders", times=1',
        failing=("test_an_order_is_not_lost_if_its_shipment_is_refused",),
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    passed: int
    failed: tuple[str, ...]
    """The names of the tests, sorted."""
    output: str


def run_tests(example: Path, scratch: Path) -> Outcome:
    """Run the tests of an example as a user with Kohort and pytest does."""
    add_entry_point(scratch)
    report = scratch / "report.xml"
    path = os.pathsep.join([f"{scratch}", *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={report}"]
    ended = subprocess.run(
        command,
        cwd=example,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    output = ended.stdout + ended.stderr
    assert report.exists(), output
    cases = [*ET.parse(report).iter("testcase")]  # noqa: S314  # pytest wrote it
    failed = {each.get("name", "") for each in cases if len(each)}
    return Outcome(passed=len(cases) - len(failed), failed=tuple(sorted(failed)), output=output)


@pytest.mark.parametrize("name", SERVICES)
def test_the_tests_of_a_service_pass(name: str, tmp_path: Path) -> None:
    outcome = run_tests(EXAMPLES / name, tmp_path)

    assert (outcome.passed, outcome.failed) == (SERVICES[name], ()), outcome.output


@pytest.mark.full
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.title)
def test_the_tests_of_a_service_find_a_mistake(change: Change, tmp_path: Path) -> None:
    name = Path(change.file).parts[0]
    shutil.copytree(EXAMPLES / name, tmp_path / name)
    changed = tmp_path / change.file
    text = changed.read_text("utf-8")
    assert text.count(change.before) == 1, f"{change.file} has changed: adapt {change.title!r}"
    changed.write_text(text.replace(change.before, change.after), "utf-8")

    outcome = run_tests(tmp_path / name, tmp_path)

    assert outcome.failed == change.failing, outcome.output
    assert outcome.passed == SERVICES[name] - len(change.failing)
