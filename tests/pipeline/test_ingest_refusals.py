"""Errors of an ingest: each is one sentence and changes nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kohort
from kohort.node.broker import Address
from kohort.pipeline import ingest
from kohort.pipeline.errors import DataLost, MalformedBatch
from kohort.pipeline.ingest.error_text import explain
from kohort.pipeline.ingest.hadoop_fs import FileSystemFailure
from kohort.pipeline.ingest.table import TableMismatch
from kohort.pipeline.ingest.table_schema import BadSchema
from kohort.types import GroupId, MemberId, Millis
from kohort.wire.api.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.client.malformed_topic import READABLE, malformed_topic
from tests.node.raw_client import RawClient
from tests.pipeline.ingest_setup import IngestBroker, numbered, options_for, rows_in


@pytest.fixture(scope="module")
def broker() -> Iterator[IngestBroker]:
    with kohort.Node(settings={"group.initial.rebalance.delay.ms": 0}) as node:
        yield IngestBroker(node.bootstrap_servers)


# The target directory


def test_a_directory_with_other_files_is_refused(
    spark: SparkSession, broker: IngestBroker, tmp_path: Path
) -> None:
    topic = broker.create_topic()
    (tmp_path / "notes.txt").write_text("important", "utf-8")

    with pytest.raises(TableMismatch, match=r"holds something else \(notes.txt\)"):
        ingest.run(spark, options_for(broker, topic, tmp_path))

    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_the_table_of_another_ingest_is_refused(
    spark: SparkSession, broker: IngestBroker, tmp_path: Path
) -> None:
    topic, other = broker.create_topic(), broker.create_topic()
    broker.write(topic, [b'{"id": 1}'])
    ingest.run(spark, options_for(broker, topic, tmp_path, schema="id INT"))
    refused = {
        f"is the table of topic {topic}": options_for(broker, other, tmp_path, schema="id INT"),
        "is the table of group of-": options_for(
            broker, topic, tmp_path, schema="id INT", group_id="another"
        ),
        "parsed with a schema": options_for(broker, topic, tmp_path),
        "partitioned by nothing": options_for(
            broker, topic, tmp_path, schema="id INT", partition_by=("id",)
        ),
        "its column id is int, not string": options_for(
            broker, topic, tmp_path, schema="id STRING"
        ),
        "has a column id, which": options_for(broker, topic, tmp_path, schema="other INT"),
    }

    for reason, options in refused.items():
        with pytest.raises(TableMismatch, match=reason):
            ingest.run(spark, options)

    assert ingest.read(spark, str(tmp_path)).count() == 1


@pytest.mark.parametrize(
    ("target", "reason"),
    [("{}/file/table", "file"), ("nosuch://host/x", 'No FileSystem for scheme "nosuch"')],
)
def test_an_unusable_target_is_named(
    spark: SparkSession, broker: IngestBroker, tmp_path: Path, target: str, reason: str
) -> None:
    (tmp_path / "file").write_text("a file", "utf-8")
    options = options_for(broker, "any", target.format(tmp_path))

    with pytest.raises(FileSystemFailure) as caught:
        ingest.run(spark, options)

    assert reason in str(caught.value)
    assert "\n" not in explain(caught.value)


def test_a_wrong_schema_creates_no_directory(
    spark: SparkSession, broker: IngestBroker, tmp_path: Path
) -> None:
    with pytest.raises(BadSchema, match="unknown type FOO"):
        ingest.run(spark, options_for(broker, "any", tmp_path / "t", schema="id FOO"))

    assert not (tmp_path / "t").exists()


# The brokers


def test_lost_records_stop_the_ingest_unless_skip_lost_is_set(
    spark: SparkSession, broker: IngestBroker, tmp_path: Path
) -> None:
    topic = broker.create_topic()
    broker.write(topic, numbered(range(3)))
    ingest.run(spark, options_for(broker, topic, tmp_path))
    broker.write(topic, numbered(range(6)))
    broker.delete_before(topic, 5)

    with pytest.raises(Exception, match=DataLost.__name__) as caught:
        ingest.run(spark, options_for(broker, topic, tmp_path))
    ingest.run(spark, options_for(broker, topic, tmp_path, skips_lost=True))

    assert explain(caught.value).startswith(f"offsets 3 to 4 of {topic}-0 are gone")
    assert explain(caught.value).endswith("; --skip-lost continues without them")
    assert rows_in(tmp_path) == [(0, offset) for offset in (0, 1, 2, 5, 6, 7, 8)]


def test_a_malformed_batch_stops_the_ingest_unless_skip_malformed_is_set(
    spark: SparkSession, tmp_path: Path
) -> None:
    with malformed_topic(tmp_path / "node") as (cluster, topic):
        broker, target = IngestBroker(cluster.bootstrap_servers), tmp_path / "table"

        with pytest.raises(Exception, match=MalformedBatch.__name__) as caught:
            ingest.run(spark, options_for(broker, topic, target))
        summary = ingest.run(spark, options_for(broker, topic, target, skips_malformed=True))

    assert explain(caught.value).startswith(f"{topic}-0 is corrupt at offset 1: ")
    assert explain(caught.value).endswith("; --skip-malformed continues without it")
    assert summary.is_group_committed
    assert rows_in(target) == [(0, offset) for offset in READABLE]


def test_a_group_with_another_protocol_type_is_refused_in_one_sentence(
    spark: SparkSession, broker: IngestBroker, tmp_path: Path
) -> None:
    topic, group = broker.create_topic(), broker.unique_name("connectors")
    with RawClient(address_of(broker)) as caller:
        joined = caller.ask(connector_request(group, ""), 9)
        caller.ask(connector_request(group, joined.member_id), 9)

        with pytest.raises(Exception, match="INCONSISTENT_GROUP_PROTOCOL") as caught:
            ingest.run(spark, options_for(broker, topic, tmp_path / "t", group_id=group))

    assert explain(caught.value).startswith(
        f"group '{group}' rejected this consumer: INCONSISTENT_GROUP_PROTOCOL"
    )


def connector_request(group: str, member_id: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GroupId(group),
        session_timeout_ms=Millis(60_000),
        rebalance_timeout_ms=Millis(60_000),
        member_id=MemberId(member_id),
        protocol_type="connect",
        protocols=(JoinGroupRequestProtocol(name="default", metadata=b"any"),),
    )


def address_of(broker: IngestBroker) -> Address:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return Address(host=host, port=int(port))
