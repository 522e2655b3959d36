"""Every program in examples/, run as a user would run it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer

import kohort
from tests.apache.cluster import Kafka
from tests.examples.test_services import SERVICES

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
TIMEOUT_S = 300


def run(*command: str, directory: Path = EXAMPLES) -> str:
    # The commands of this environment, such as kohort, come first.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def produce(bootstrap_servers: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    for number in range(count):
        producer.produce(topic, f"{number}")
    assert producer.flush(30) == 0
    producer.close()


def consume_once(bootstrap_servers: str, topic: str, group: str, count: int) -> None:
    with kohort.Consumer(
        bootstrap_servers=bootstrap_servers, group_id=group, auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe([topic])
        for _ in zip(range(count), consumer, strict=False):
            pass
        consumer.commit()


def test_every_example_is_listed_and_run() -> None:
    page = (EXAMPLES / "README.md").read_text("utf-8")
    programs = {path.name for path in EXAMPLES.iterdir()} - {
        "README.md",
        "pytest.ini",
        "__pycache__",
    }

    assert programs == {*SERVICES, "asyncio_node.py", "spark_job.py", "operator_session.sh"}
    assert [name for name in programs if f"({name})" not in page] == []


def test_a_node_runs_inside_an_asyncio_program() -> None:
    assert run(sys.executable, "asyncio_node.py") == "read 10 records, sum 45\n"


@pytest.mark.full
def test_a_spark_job_reads_a_topic_once_under_its_group(tmp_path: Path) -> None:
    with kohort.Node(settings={"group.initial.rebalance.delay.ms": 0}) as node:
        produce(node.bootstrap_servers, "orders", 20)

        output = run(
            sys.executable, "spark_job.py", node.bootstrap_servers, "orders", f"{tmp_path}"
        )

    assert f"20 rows in {tmp_path}/table" in output


@pytest.mark.parametrize("cluster", ["kohort", "apache"])
def test_an_operator_inspects_and_resets_a_group(
    cluster: str, request: pytest.FixtureRequest
) -> None:
    if cluster == "apache":
        kafka: Kafka = request.getfixturevalue("apache_kafka")
        _assert_operator_session_works(kafka.bootstrap_servers)
    else:
        with kohort.Node(settings={"group.initial.rebalance.delay.ms": 0}) as node:
            _assert_operator_session_works(node.bootstrap_servers)


def _assert_operator_session_works(bootstrap_servers: str) -> None:
    topic, group = "example-orders", "example-billing"
    produce(bootstrap_servers, topic, 5)
    consume_once(bootstrap_servers, topic, group, 5)

    output = run("./operator_session.sh", bootstrap_servers, group, topic)

    assert group in output
    assert topic in output
