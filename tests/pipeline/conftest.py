"""One Spark session for all tests: two cores, no web UI, UTC."""

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import kohort
from tests.apache.shared import SharedKafka
from tests.client.node_cluster import SETTINGS, Cluster
from tests.pipeline.spark_settings import FAST_SETTINGS


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # Workers run the Python of the tests, not the first one of the PATH.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    directory = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("kohort tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        .config("spark.local.dir", str(directory / "local"))
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "ERROR")
        .config(map=dict(FAST_SETTINGS))
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(
    scope="session", params=["Kohort", pytest.param("Apache Kafka", marks=pytest.mark.full)]
)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The same tests run on both; every test has its own topics and groups.

    Apache Kafka is for the full suite, except for the first tests of the stream.
    """
    if request.param == "Kohort":
        with kohort.Node(settings=SETTINGS) as node:
            yield Cluster(bootstrap_servers=node.bootstrap_servers)
    else:
        kafka: SharedKafka = request.getfixturevalue("apache_kafka")
        yield Cluster(bootstrap_servers=kafka.bootstrap_servers)
