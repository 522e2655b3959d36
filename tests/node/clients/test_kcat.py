"""kcat, if it is installed."""

import shutil
import subprocess

import pytest

from tests.contract.cluster import Cluster

KCAT = shutil.which("kcat") or shutil.which("kafkacat")

pytestmark = pytest.mark.skipif(KCAT is None, reason="kcat is not installed")


def kcat(cluster: Cluster, *arguments: str, given: str = "") -> str:
    assert KCAT is not None
    words = [KCAT, "-b", cluster.bootstrap_servers, *arguments]
    finished = subprocess.run(
        words, input=given, capture_output=True, text=True, timeout=30, check=True
    )
    return finished.stdout


def test_kcat_consumes_what_it_produced(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    kcat(cluster, "-P", "-t", topic, "-K", ":", given="a:1\nb:2\n")

    assert kcat(cluster, "-C", "-t", topic, "-e", "-q", "-f", "%k=%s@%o\n") == "a=1@0\nb=2@1\n"


def test_kcat_lists_the_topic(cluster: Cluster) -> None:
    topic = cluster.create_topic(3)

    assert f'topic "{topic}" with 3 partitions' in kcat(cluster, "-L", "-t", topic)


def test_kcat_consumes_as_a_group(cluster: Cluster) -> None:
    topic, group = cluster.create_topic(), cluster.name_group()
    kcat(cluster, "-P", "-t", topic, given="1\n2\n")

    from_the_start = ("-X", "auto.offset.reset=earliest")
    assert kcat(cluster, "-q", "-e", *from_the_start, "-G", group, topic) == "1\n2\n"
