"""scripts/kafka: an Apache Kafka by hand."""

import signal
import subprocess
import sys

import pytest

from tests.apache.jars import find_classpath
from tests.apache.java import find_java
from tests.apache.unavailable import Unavailable, skip
from tests.contract.cluster import Cluster
from tests.tidy.repository import ROOT


def test_it_says_where_it_is_and_ends_when_it_is_told() -> None:
    try:
        find_java()
        find_classpath()
    except Unavailable as reason:
        skip(reason)
    words = [sys.executable, "-m", "tests.apache", "--set", "num.partitions=3"]

    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        kafka = Cluster(name="by hand", bootstrap_servers=process.stdout.readline().strip())
        kafka.wait()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0

    with pytest.raises(ConnectionRefusedError):
        kafka.call()


def test_a_setting_without_a_value_is_refused() -> None:
    words = [sys.executable, "-m", "tests.apache", "--set", "num.partitions"]

    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)

    assert ended.returncode == 2
    assert "not NAME=VALUE" in ended.stderr
