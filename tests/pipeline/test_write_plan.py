"""The checks of a write before any task starts."""

import pickle

import pytest

from kohort.pipeline.errors import BadSourceOption
from kohort.pipeline.sink.write_plan import BadColumns, WritePlan, make_plan

SERVERS = {"kafka.bootstrap.servers": "127.0.0.1:9092"}
VALUE = ("value", "binary")
TOPIC = ("topic", "string")
HEADERS = ("headers", "array<struct<key:string,value:binary>>")


def plan(*columns: tuple[str, str], **options: str) -> WritePlan:
    return make_plan({**SERVERS, **options}, columns)


def test_the_option_topic_overrides_the_column() -> None:
    by_column = plan(TOPIC, VALUE)
    by_option = plan(TOPIC, VALUE, topic="Orders")

    assert by_column.topic is None
    assert by_column.columns == {"topic": 0, "value": 1}
    assert by_option.topic == "Orders"
    assert by_option.columns == {"value": 1}


def test_other_columns_are_ignored() -> None:
    made = plan(
        ("offset", "bigint"), HEADERS, ("partition", "int"), ("key", "string"), TOPIC, VALUE
    )

    assert made.columns == {"headers": 1, "partition": 2, "key": 3, "topic": 4, "value": 5}


def test_a_string_with_a_collation_is_accepted() -> None:
    made = plan(("value", "string collate UTF8_LCASE"), topic="t")

    assert made.columns == {"value": 0}


@pytest.mark.parametrize(
    ("columns", "options", "reason"),
    [
        ((TOPIC, ("amount", "int")), {}, r"no column value among topic, amount: .*to_json"),
        ((VALUE,), {}, r'no column topic among value; .*option\("topic", NAME\)'),
        ((("value", "bigint"),), {"topic": "t"}, "value is bigint and must be string or binary"),
        ((("topic", "int"), VALUE), {}, r"topic is int and must be string: CAST\(topic AS"),
        ((("key", "double"), VALUE), {"topic": "t"}, "key is double"),
        ((("partition", "bigint"), VALUE), {"topic": "t"}, r"partition is bigint.*must be int"),
        ((("headers", "map<string,binary>"), VALUE), {"topic": "t"}, "headers is map"),
        ((VALUE, VALUE), {"topic": "t"}, "two columns named value"),
        ((("Value", "binary"),), {"topic": "t"}, "no column value among Value"),
    ],
)
def test_missing_or_mistyped_columns_are_refused(
    columns: tuple[tuple[str, str], ...], options: dict[str, str], reason: str
) -> None:
    with pytest.raises(BadColumns, match=reason):
        plan(*columns, **options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"topic": " "}, "the option topic is empty"),
        ({"topics": "t"}, r"there is no option topics; did you mean topic\?"),
        ({"includeHeader": "true"}, r"did you mean includeHeaders\?"),
        ({"path": "orders"}, r"save\(\) without a path"),
        ({"subscribe": "orders"}, "there is no option subscribe$"),
        ({"kafka.acks": "1"}, "kafka.acks cannot be '1'.*remove the option, or set it to all"),
        ({"kafka.acks": "0"}, "kafka.acks cannot be '0'"),
        ({"kafka.request.required.acks": "1"}, "kafka.acks cannot be '1'"),
        ({"kafka.enable.idempotence": "false"}, "kafka.enable.idempotence cannot be false"),
        ({"kafka.transactional.id": "x"}, "without transactions"),
        ({"kafka.delivery.timeout.ms": "0"}, "cannot be '0': less than 1"),
        ({"kafka.message.timeout.ms": "soon"}, "kafka.delivery.timeout.ms cannot be 'soon'"),
        ({"kafka.max.request.size": "1"}, "use kafka.message.max.bytes"),
        ({"kafka.value.serializer": "x"}, "cast the column `value`"),
        ({"kafka.sasl.jaas.config": "x"}, "kafka.sasl.username and kafka.sasl.password"),
        ({"kafka.bootstrap.servers": ""}, "kafka.bootstrap.servers is missing"),
        ({"kafka.metadata.broker.list": "b:1"}, "given twice, once as an alias"),
    ],
)
def test_unknown_or_unsafe_options_are_refused(options: dict[str, str], reason: str) -> None:
    with pytest.raises(BadSourceOption, match=reason):
        plan(VALUE, **{"topic": "t", **options})


def test_a_write_without_bootstrap_servers_is_refused() -> None:
    with pytest.raises(BadSourceOption, match=r"kafka.bootstrap.servers is missing"):
        make_plan({"topic": "t"}, [VALUE])


def test_options_for_spark_itself_are_accepted() -> None:
    options = {"checkpointLocation": "x", "queryName": "y", "includeHeaders": "true"}

    made = plan(VALUE, topic="t", **options)

    assert made.topic == "t"


def test_producer_settings_are_the_given_ones_and_defaults() -> None:
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


def test_a_plan_can_be_pickled_and_its_repr_has_no_password() -> None:
    made = plan(VALUE, topic="t", **{"kafka.sasl.password": "hush "})

    arrived = pickle.loads(pickle.dumps(made))  # noqa: S301  # our own bytes

    assert arrived == made
    assert arrived.settings["sasl.password"] == "hush "
    assert "hush" not in repr(made)
