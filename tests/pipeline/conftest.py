"""One small Spark for all tests that ask for it: two cores, no pages, every time in UTC."""

import os
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import kohort
from tests.apache.cluster import Kafka
from tests.client.clusters import SETTINGS, Cluster
from tests.pipeline.quick import QUICK


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # Workers are to be the Python that runs the tests, whatever else is on the path.
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
        .config(map=dict(QUICK))
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.fixture(scope="session", params=["Kohort", "Apache Kafka"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The same tests on both; topics and groups have names of their own."""
    if request.param == "Kohort":
        with kohort.Node(settings=SETTINGS) as node:
            yield Cluster(bootstrap_servers=node.bootstrap_servers)
    else:
        kafka: Kafka = request.getfixturevalue("apache_kafka")
        yield Cluster(bootstrap_servers=kafka.bootstrap_servers)
