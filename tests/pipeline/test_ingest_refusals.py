"""What an ingest will not do: each refusal is one sentence, and leaves everything as it was."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import kohort
from kohort.node.broker import Address
from kohort.pipeline import ingest
from kohort.pipeline.errors import DataLost
from kohort.pipeline.ingest.explaining import explain
from kohort.pipeline.ingest.files import CannotKeep
from kohort.pipeline.ingest.schema import BadSchema, read_schema
from kohort.pipeline.ingest.table import NotOurs
from kohort.types import GroupId, MemberId, Millis
from kohort.wire.api.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tests.node.calling import Caller
from tests.pipeline.ingesting import Broker, numbered, places_in, wish_for


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with kohort.Node(settings={"group.initial.rebalance.delay.ms": 0}) as node:
        yield Broker(node.bootstrap_servers)


# The place


def test_a_directory_with_something_else_is_left_alone(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = broker.make_topic()
    (tmp_path / "thesis.tex").write_text("years of work", "utf-8")

    with pytest.raises(NotOurs, match=r"holds something else \(thesis.tex\)"):
        ingest.run(spark, wish_for(broker, topic, tmp_path))

    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_another_ingests_table_is_left_alone(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic, other = broker.make_topic(), broker.make_topic()
    broker.write(topic, [b'{"id": 1}'])
    ingest.run(spark, wish_for(broker, topic, tmp_path, schema="id INT"))
    refused = {
        f"is the table of topic {topic}": wish_for(broker, other, tmp_path, schema="id INT"),
        "is the table of group of-": wish_for(
            broker, topic, tmp_path, schema="id INT", group_id="another"
        ),
        "parsed with a schema": wish_for(broker, topic, tmp_path),
        "partitioned by nothing": wish_for(
            broker, topic, tmp_path, schema="id INT", partition_by=("id",)
        ),
        "its column id is int, not string": wish_for(broker, topic, tmp_path, schema="id STRING"),
        "has a column id, which": wish_for(broker, topic, tmp_path, schema="other INT"),
    }

    for reason, wish in refused.items():
        with pytest.raises(NotOurs, match=reason):
            ingest.run(spark, wish)

    assert ingest.read(spark, str(tmp_path)).count() == 1


@pytest.mark.parametrize(
    ("target", "reason"),
    [("{}/file/table", "file"), ("nosuch://host/x", 'No FileSystem for scheme "nosuch"')],
)
def test_a_place_that_cannot_be_used_is_named(
    spark: SparkSession, broker: Broker, tmp_path: Path, target: str, reason: str
) -> None:
    (tmp_path / "file").write_text("in the way", "utf-8")
    wish = wish_for(broker, "any", target.format(tmp_path))

    with pytest.raises(CannotKeep) as caught:
        ingest.run(spark, wish)

    assert reason in str(caught.value)
    assert "\n" not in explain(caught.value)


# The schema

SCHEMAS = {
    "": "is empty",
    "INT": "single type int",
    "id FOO": 'line 1, column 4): Unsupported data type "FOO"',
    "id INT,": "no DDL of Spark's",
    "id INT, ID STRING": "has ID twice",
    "id INTERVAL": "id is interval, which cannot be read from JSON",
    "s STRUCT<c: CHAR(3)>": "s.c is char",
    "m MAP<INT, INT>": "m is a map whose keys",
    "batch INT": "may not have a column batch",
    '{"properties": {"id": {"type": "integer"}}}': "a JSON Schema",
    '{"type": "struct"}': "'fields' is missing",
    '{"type": "struct", "fields": [{"name": "a", "type": "foo", "nullable": true}]}': "foo",
    '{"type"': "begins like JSON and is none",
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_schema_that_cannot_be_says_what_is_wrong(
    spark: SparkSession, broker: Broker, tmp_path: Path, schema: str
) -> None:
    with pytest.raises(BadSchema) as caught:
        ingest.run(spark, wish_for(broker, "any", tmp_path / "t", schema=schema))

    assert SCHEMAS[schema] in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "t").exists()


def test_a_struct_in_json_is_a_schema(spark: SparkSession) -> None:
    field = {"name": "id", "type": "long", "nullable": False, "metadata": {}}

    written = json.dumps({"type": "struct", "fields": [field]})

    assert read_schema(written) == read_schema("id BIGINT NOT NULL;")
    assert spark.createDataFrame([], read_schema(written)).columns == ["id"]


@pytest.mark.parametrize(
    ("by", "reason"), [("nothing", "no column nothing"), ("amount", "amount is double")]
)
def test_directories_need_columns_that_can_name_them(
    spark: SparkSession, broker: Broker, tmp_path: Path, by: str, reason: str
) -> None:
    with pytest.raises(BadSchema, match=reason):
        ingest.run(
            spark,
            wish_for(broker, "t", tmp_path, schema="id INT, amount DOUBLE", partition_by=(by,)),
        )


# The brokers


def test_lost_records_stop_it_unless_they_may_be_skipped(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic = broker.make_topic()
    broker.write(topic, numbered(range(3)))
    ingest.run(spark, wish_for(broker, topic, tmp_path))
    broker.write(topic, numbered(range(6)))
    broker.delete_before(topic, 5)

    with pytest.raises(Exception, match=DataLost.__name__) as caught:
        ingest.run(spark, wish_for(broker, topic, tmp_path))
    ingest.run(spark, wish_for(broker, topic, tmp_path, skips_lost=True))

    assert explain(caught.value).startswith(f"offsets 3 to 4 of {topic}-0 are gone")
    assert explain(caught.value).endswith("; --skip-lost goes on without them")
    assert places_in(tmp_path) == [(0, offset) for offset in (0, 1, 2, 5, 6, 7, 8)]


def test_a_group_of_another_kind_is_refused_in_one_sentence(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    topic, group = broker.make_topic(), broker.name_anew("connectors")
    with Caller(address_of(broker)) as caller:
        told = caller.ask(connector_request(group, ""), 9)
        caller.ask(connector_request(group, told.member_id), 9)

        with pytest.raises(Exception, match="INCONSISTENT_GROUP_PROTOCOL") as caught:
            ingest.run(spark, wish_for(broker, topic, tmp_path / "t", group_id=group))

    assert explain(caught.value).startswith(f"group '{group}' refused: INCONSISTENT_GROUP_PROTOCOL")


def connector_request(group: str, member_id: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GroupId(group),
        session_timeout_ms=Millis(60_000),
        rebalance_timeout_ms=Millis(60_000),
        member_id=MemberId(member_id),
        protocol_type="connect",
        protocols=(JoinGroupRequestProtocol(name="default", metadata=b"any"),),
    )


def address_of(broker: Broker) -> Address:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return Address(host=host, port=int(port))
