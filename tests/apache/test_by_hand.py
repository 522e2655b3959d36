"""`make kafka` starts an Apache Kafka."""

import signal
import subprocess
import sys

import pytest

from tests.apache.jars import find_classpath
from tests.apache.java import find_java
from tests.apache.unavailable import Unavailable, skip
from tests.contract.cluster import Cluster
from tests.tidy.repository import ROOT


def test_it_prints_its_address_and_stops_on_sigterm() -> None:
    try:
        find_java()
        find_classpath()
    except Unavailable as reason:
        skip(reason)
    arguments = [sys.executable, "-m", "tests.apache", "--set", "num.partitions=3"]

    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        kafka = Cluster(name="make kafka", bootstrap_servers=process.stdout.readline().strip())
        kafka.wait_for_coordinator()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0

    with pytest.raises(ConnectionRefusedError):
        kafka.call()


def test_a_setting_without_a_value_is_refused() -> None:
    arguments = [sys.executable, "-m", "tests.apache", "--set", "num.partitions"]

    ended = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=False)

    assert ended.returncode == 2
    assert "not NAME=VALUE" in ended.stderr
