"""What a write is refused for, before it begins."""

import pickle

import pytest

from kohort.pipeline.errors import BadSourceOption
from kohort.pipeline.sink.plan import BadColumns, Plan, make_plan

SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
VALUE = ("value", "binary")
TOPIC = ("topic", "string")
HEADERS = ("headers", "array<struct<key:string,value:binary>>")


def plan(*columns: tuple[str, str], **options: str) -> Plan:
    return make_plan({**SERVERS, **options}, columns)


def test_a_topic_comes_from_a_column_and_the_option_wins() -> None:
    by_column = plan(TOPIC, VALUE)
    by_option = plan(TOPIC, VALUE, topic="Orders")

    assert by_column.topic is None
    assert by_column.columns == {"topic": 0, "value": 1}
    assert by_option.topic == "Orders"
    assert by_option.columns == {"value": 1}


def test_every_part_of_a_record_has_its_column_and_others_are_left_out() -> None:
    made = plan(
        ("offset", "bigint"), HEADERS, ("partition", "int"), ("key", "string"), TOPIC, VALUE
    )

    assert made.columns == {"headers": 1, "partition": 2, "key": 3, "topic": 4, "value": 5}


def test_text_in_any_collation_is_text() -> None:
    made = plan(("value", "string collate UTF8_LCASE"), topic="t")

    assert made.columns == {"value": 0}


@pytest.mark.parametrize(
    ("columns", "options", "complaint"),
    [
        ((TOPIC, ("amount", "int")), {}, r"no column value among topic, amount: .*to_json"),
        ((VALUE,), {}, r'no column topic among value; .*option\("topic", NAME\)'),
        ((("value", "bigint"),), {"topic": "t"}, "value is bigint, and must be string or binary"),
        ((("topic", "int"), VALUE), {}, r"topic is int, and must be string: CAST\(topic AS"),
        ((("key", "double"), VALUE), {"topic": "t"}, "key is double"),
        ((("partition", "bigint"), VALUE), {"topic": "t"}, r"partition is bigint.*must be int"),
        ((("headers", "map<string,binary>"), VALUE), {"topic": "t"}, "headers is map"),
        ((VALUE, VALUE), {"topic": "t"}, "two columns named value"),
        ((("Value", "binary"),), {"topic": "t"}, "no column value among Value"),
    ],
)
def test_columns_that_cannot_become_records_are_refused(
    columns: tuple[tuple[str, str], ...], options: dict[str, str], complaint: str
) -> None:
    with pytest.raises(BadColumns, match=complaint):
        plan(*columns, **options)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"topic": " "}, "the option topic is empty"),
        ({"topics": "t"}, r"there is no option topics; did you mean topic\?"),
        ({"includeHeader": "true"}, r"did you mean includeHeaders\?"),
        ({"path": "orders"}, "a topic is no path"),
        ({"subscribe": "orders"}, "there is no option subscribe$"),
        ({"kafka.acks": "1"}, "kafka.acks cannot be '1'.*leave it out, or say all"),
        ({"kafka.acks": "0"}, "kafka.acks cannot be '0'"),
        ({"kafka.request.required.acks": "1"}, "kafka.acks cannot be '1'"),
        ({"kafka.enable.idempotence": "false"}, "kafka.enable.idempotence cannot be off"),
        ({"kafka.transactional.id": "x"}, "a write is no transaction"),
        ({"kafka.delivery.timeout.ms": "0"}, "cannot be '0': a number of at least 1"),
        ({"kafka.message.timeout.ms": "soon"}, "kafka.delivery.timeout.ms cannot be 'soon'"),
        ({"kafka.max.request.size": "1"}, "it is called kafka.message.max.bytes here"),
        ({"kafka.value.serializer": "x"}, "cast the column `value`"),
        ({"kafka.sasl.jaas.config": "x"}, "kafka.sasl.username and kafka.sasl.password"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing"),
        ({"kafka.metadata.broker.list": "b:1"}, "given twice, once under another name"),
    ],
)
def test_options_that_cannot_be_had_are_refused(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadSourceOption, match=complaint):
        plan(VALUE, **{"topic": "t", **options})


def test_a_write_without_an_address_is_refused() -> None:
    with pytest.raises(BadSourceOption, match=r"kafka.bootstrap.servers is missing"):
        make_plan({"topic": "t"}, [VALUE])


def test_what_spark_keeps_for_itself_is_not_refused() -> None:
    options = {"checkpointLocation": "x", "queryName": "y", "includeHeaders": "true"}

    made = plan(VALUE, topic="t", **options)

    assert made.topic == "t"


def test_the_producer_gets_what_was_given_and_defaults_for_the_rest() -> None:
    given = {"KAFKA.Compression.Type": "ZSTD", "kafka.message.timeout.ms": "5000"}

    made = plan(VALUE, topic="t", **given, **{"kafka.acks": "-1"})

    assert dict(made.settings) == {
        "bootstrap.servers": "127.0.0.1:9092",
        "client.id": "kohort-sink",
        "compression.type": "ZSTD",
        "acks": "-1",
        "delivery.timeout.ms": "5000",
        "enable.idempotence": "true",
        "partitioner": "murmur2_random",
        "queue.buffering.max.kbytes": "65536",
    }
    assert made.delivery_ms == 5000


def test_a_plan_travels_whole_and_shows_no_password() -> None:
    made = plan(VALUE, topic="t", **{"kafka.sasl.password": "hush "})

    arrived = pickle.loads(pickle.dumps(made))  # noqa: S301  # our own bytes

    assert arrived == made
    assert arrived.settings["sasl.password"] == "hush "
    assert "hush" not in repr(made)
