"""A write task, without Spark."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from kafka.partitioner.default import murmur2

import kohort
from kohort.client.fetch.consumer_records import ConsumerRecord
from kohort.pipeline.errors import BadSourceOption
from kohort.pipeline.sink.rows import split_batch
from kohort.pipeline.sink.write_plan import BadColumns, WritePlan, make_plan
from kohort.pipeline.sink.write_task import NotWritten, check_settings, write
from tests.pipeline.sink_setup import HEADERS, Target, contents
from tests.wait import wait_until

TYPES = {"value": "binary", "key": "binary", "topic": "string", "partition": "int"}

ARROW_HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with kohort.Node(settings={"auto.create.topics.enable": False}) as node:
        yield Target(node.bootstrap_servers)


def plan_for(target: Target, batch: pa.RecordBatch, **options: str) -> WritePlan:
    types = {**TYPES, "headers": HEADERS}
    return make_plan(target.options(options), [(name, types[name]) for name in batch.schema.names])


def fields(record: ConsumerRecord) -> tuple[object, ...]:
    return record.key, record.value, record.headers


def test_keys_values_partitions_and_headers_are_written_unchanged(target: Target) -> None:
    topic = target.create_topic(3)
    batch = pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b"k", None, b"", b"\x00\xff"], pa.binary()),
            "value": pa.array([b"v", b"", None, b"\xff\x00"], pa.binary()),
            "partition": pa.array([2, 0, 1, 2], pa.int32()),
            "headers": pa.array(
                [
                    [{"key": "a", "value": b"1"}, {"key": "a", "value": b"2"}],
                    None,
                    [],
                    [{"key": "ü", "value": None}, {"key": "", "value": b""}],
                ],
                ARROW_HEADERS,
            ),
        }
    )

    written = write(plan_for(target, batch, topic=topic), [batch])

    found = target.read(topic)
    assert [record.partition for record in found] == [0, 1, 2, 2]
    assert [fields(record) for record in found] == [
        (None, b"", ()),
        (b"", None, ()),
        (b"k", b"v", (("a", b"1"), ("a", b"2"))),
        (b"\x00\xff", b"\xff\x00", (("ü", None), ("", b""))),
    ]
    assert written.rows == 4
    assert written.size_in_bytes == (1 + 0 + 2) + (1 + 0 + 2) + 4 + 2


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.string_view()]
)
def test_all_arrow_types_of_text_and_bytes_are_written(target: Target, kind: pa.DataType) -> None:
    topic = target.create_topic()
    text = pa.array(["left out", "grün", None, ""], pa.string()).cast(kind)
    batch = pa.RecordBatch.from_pydict({"value": text, "key": text}).slice(1)

    write(plan_for(target, batch, topic=topic), [batch])

    assert contents(target.read(topic)) == ["grün".encode(), None, b""]


def test_a_slice_of_a_batch_keeps_its_headers(target: Target) -> None:
    topic = target.create_topic()
    headers = [[{"key": f"h{number}", "value": b"x"}] * (number % 3) for number in range(9)]
    batch = pa.RecordBatch.from_pydict(
        {
            "value": pa.array([b"%d" % number for number in range(9)]),
            "headers": pa.array(headers, ARROW_HEADERS),
        }
    ).slice(2, 5)

    write(plan_for(target, batch, topic=topic), [batch])

    assert [(record.value, len(record.headers)) for record in target.read(topic)] == [
        (b"%d" % number, number % 3) for number in range(2, 7)
    ]


def test_rows_are_written_to_the_topic_of_their_column(target: Target) -> None:
    first, second = target.create_topic(), target.create_topic()
    batch = pa.RecordBatch.from_pydict(
        {
            "topic": [first, second, first, second],
            "value": pa.array([b"1", b"2", b"3", b"4"]),
        }
    )

    write(plan_for(target, batch), [batch])

    assert contents(target.read(first)) == [b"1", b"3"]
    assert contents(target.read(second)) == [b"2", b"4"]


def test_a_key_goes_to_the_partition_that_a_java_producer_chooses(target: Target) -> None:
    topic = target.create_topic(7)
    keys = [b"key %d" % number for number in range(50)] + [b""]
    batch = pa.RecordBatch.from_pydict({"key": pa.array(keys), "value": pa.array(keys)})

    write(plan_for(target, batch, topic=topic), [batch])

    found = {record.key: record.partition for record in target.read(topic)}
    assert found == {key: (murmur2(key) & 0x7FFFFFFF) % 7 for key in keys}


def test_with_a_null_partition_the_key_decides(target: Target) -> None:
    topic = target.create_topic(7)
    batch = pa.RecordBatch.from_pydict(
        {
            "key": pa.array([b"k", b"k"]),
            "value": pa.array([b"by key", b"fixed"]),
            "partition": pa.array([None, 6], pa.int32()),
        }
    )

    write(plan_for(target, batch, topic=topic), [batch])

    found = {record.value: record.partition for record in target.read(topic)}
    assert found == {b"by key": (murmur2(b"k") & 0x7FFFFFFF) % 7, b"fixed": 6}


def test_a_task_without_rows_writes_nothing(target: Target) -> None:
    topic = target.create_topic()
    batch = pa.RecordBatch.from_pydict({"value": pa.array([], pa.binary())})

    written = write(plan_for(target, batch, topic=topic), [batch])

    assert (written.rows, written.size_in_bytes) == (0, 0)
    assert target.read(topic) == []


@pytest.mark.parametrize(
    "queue", [{"queue.buffering.max.messages": "20"}, {"queue.buffering.max.kbytes": "4"}]
)
def test_a_full_queue_delays_the_task_and_keeps_the_order(
    target: Target, queue: dict[str, str]
) -> None:
    topic = target.create_topic(3)
    values = [b"%d" % number * (1 + number % 50) for number in range(5_000)]
    keys = [b"%d" % (number % 5) for number in range(5_000)]
    batch = pa.RecordBatch.from_pydict({"key": pa.array(keys), "value": pa.array(values)})
    options = {f"kafka.{name}": text for name, text in queue.items()}

    write(plan_for(target, batch, topic=topic, **options), [batch])

    by_key: dict[object, list[bytes | None]] = {}
    for record in target.read(topic):
        by_key.setdefault(record.key, []).append(record.value)
    assert by_key == {b"%d" % number: values[number::5] for number in range(5)}


def test_a_large_batch_is_split() -> None:
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"x" * 1_000_000] * 50)})

    found = list(split_batch(batch))

    assert len(found) > 5
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches([batch]))


def test_a_row_larger_than_a_slice_is_one_slice() -> None:
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"x" * 9_000_000] * 2)})

    found = list(split_batch(batch))

    assert [piece.num_rows for piece in found] == [1, 1]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (
            {"topic": pa.array(["t", None], pa.string()), "value": pa.array([b"1", b"2"])},
            r'1 of 2 rows have no topic: .*option\("topic", NAME\)',
        ),
        (
            {"value": pa.array([b"1", b"2"]), "partition": pa.array([0, -1], pa.int32())},
            "there is no partition -1: .*null to let the key choose",
        ),
        (
            {
                "value": pa.array([b"1", b"2"]),
                "headers": pa.array([[{"key": None, "value": b"x"}], [None]], ARROW_HEADERS),
            },
            "2 headers have no name",
        ),
    ],
)
def test_invalid_rows_are_refused_before_any_row_is_sent(
    target: Target, columns: dict[str, pa.Array], reason: str
) -> None:
    topic = target.create_topic()
    batch = pa.RecordBatch.from_pydict(columns)
    options = {} if "topic" in columns else {"topic": topic}

    with pytest.raises(BadColumns, match=reason):
        write(plan_for(target, batch, **options), [batch])

    assert target.read(topic) == []


def test_a_topic_that_does_not_exist_is_named(target: Target) -> None:
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"1", b"2"])})
    options = {"topic": "nowhere", "kafka.topic.metadata.propagation.max.ms": "200"}

    with pytest.raises(NotWritten, match=r"nowhere.*\[.*UNKNOWN_TOPIC.*\], create the topic"):
        write(plan_for(target, batch, **options), [batch])


def test_only_the_first_kinds_of_failures_are_listed(target: Target) -> None:
    batch = pa.RecordBatch.from_pydict(
        {
            "topic": [f"nowhere-{number}" for number in range(7)],
            "value": pa.array([b"1"] * 7),
        }
    )
    options = {"kafka.topic.metadata.propagation.max.ms": "1000"}

    with pytest.raises(NotWritten, match="7 of 7 records were not delivered") as caught:
        write(plan_for(target, batch, **options), [batch])

    assert str(caught.value).count("UNKNOWN_TOPIC") == 5
    assert "; and others" in str(caught.value)


@pytest.mark.parametrize("name", ["no spaces", "x" * 300, "nul\0nul"])
def test_an_invalid_topic_name_is_refused(target: Target, name: str) -> None:
    batch = pa.RecordBatch.from_pydict({"topic": [name], "value": pa.array([b"1"])})
    options = {"kafka.topic.metadata.propagation.max.ms": "200"}

    with pytest.raises(NotWritten, match=name[:3]):
        write(plan_for(target, batch, **options), [batch])


def test_a_partition_that_does_not_exist_is_named(target: Target) -> None:
    topic = target.create_topic(2)
    batch = pa.RecordBatch.from_pydict(
        {"value": pa.array([b"1", b"2"]), "partition": pa.array([1, 7], pa.int32())}
    )

    with pytest.raises(NotWritten, match=rf"{topic}-7.*fewer partitions"):
        write(plan_for(target, batch, topic=topic), [batch])


def test_a_record_too_large_for_the_producer_fails_the_task(target: Target) -> None:
    topic = target.create_topic()
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"1", b"x" * 2_000_000])})

    with pytest.raises(
        NotWritten, match=rf"1 of 2 records .*{topic}: .*\[MSG_SIZE_TOO_LARGE\], check"
    ):
        write(plan_for(target, batch, topic=topic), [batch])


def test_a_record_too_large_for_the_broker_fails_the_task(target: Target) -> None:
    topic = target.create_topic(config={"max.message.bytes": "1000"})
    values = [b"1", b"x" * 5_000]

    # Two tasks, because the broker refuses a batch as a whole.
    batches = [pa.RecordBatch.from_pydict({"value": pa.array([each])}) for each in values]
    write(plan_for(target, batches[0], topic=topic), batches[:1])
    with pytest.raises(
        NotWritten, match=rf"1 of 1 records .* {topic}-0: .*\[MSG_SIZE_TOO_LARGE\].*\(1 records\)"
    ):
        write(plan_for(target, batches[1], topic=topic), batches[1:])

    assert contents(target.read(topic)) == [b"1"]


def test_a_record_larger_than_the_whole_queue_fails_the_task(target: Target) -> None:
    topic = target.create_topic()
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"1", b"x" * 3_000])})
    options = {"topic": topic, "kafka.queue.buffering.max.kbytes": "1"}

    with pytest.raises(NotWritten, match=rf"{topic} is larger than kafka.queue"):
        write(plan_for(target, batch, **options), [batch])


def test_an_unreachable_broker_fails_the_task_within_the_delivery_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"1"] * 3)})
    options = {"kafka.bootstrap.servers": address, "kafka.delivery.timeout.ms": "1000"}
    plan = make_plan({**options, "topic": "t"}, [("value", "binary")])

    with pytest.raises(NotWritten, match=r"3 of 3 records .*_MSG_TIMED_OUT.*Connection refused"):
        write(plan, [batch])


def test_a_full_queue_for_an_unreachable_broker_fails_the_task() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"1"] * 100)})
    options = {
        "topic": "t",
        "kafka.bootstrap.servers": address,
        "kafka.delivery.timeout.ms": "1000",
        "kafka.queue.buffering.max.messages": "10",
    }

    with pytest.raises(NotWritten, match=r"\d+ of 100 records .*_MSG_TIMED_OUT"):
        write(make_plan(options, [("value", "binary")]), [batch])


def test_records_sent_before_the_input_fails_stay(target: Target) -> None:
    topic = target.create_topic()
    batch = pa.RecordBatch.from_pydict({"value": pa.array([b"1"])})

    def rows() -> Iterator[pa.RecordBatch]:
        yield batch
        wait_until(lambda: target.read(topic))
        raise RuntimeError("the input failed")

    with pytest.raises(RuntimeError, match="the input failed"):
        write(plan_for(target, batch, topic=topic), rows())

    assert contents(target.read(topic)) == [b"1"]


def test_a_broker_that_restarts_gets_every_record_once(tmp_path: Path) -> None:
    first = kohort.Node(data=tmp_path).start()
    target = Target(first.bootstrap_servers)
    topic = target.create_topic()
    batches = [
        pa.RecordBatch.from_pydict(
            {"value": pa.array([b"%d" % (start + each) for each in range(500)])}
        )
        for start in range(0, 2_000, 500)
    ]

    def rows() -> Iterator[pa.RecordBatch]:
        yield batches[0]
        yield batches[1]
        wait_until(lambda: len(target.read(topic)) == 1_000)
        first.stop()
        yield batches[2]
        second.start()
        yield batches[3]

    port = int(target.bootstrap_servers.rpartition(":")[2])
    second = kohort.Node(data=tmp_path, port=port)
    try:
        write(plan_for(target, batches[0], topic=topic), rows())

        assert contents(target.read(topic)) == [b"%d" % number for number in range(2_000)]
    finally:
        first.stop()
        second.stop()


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("no.such.setting", "1", 'No such configuration property: "no.such.setting"'),
        ("linger.ms", "often", "linger.ms"),
        ("compression.type", "brotli", "brotli"),
        ("max.in.flight.requests.per.connection", "50", "max.in.flight"),
        ("oauth_cb", "x", "oauth_cb|callable"),
    ],
)
def test_a_wrong_producer_setting_is_refused_with_its_name(
    name: str, text: str, reason: str
) -> None:
    options = {"topic": "t", "kafka.bootstrap.servers": "127.0.0.1:1", f"kafka.{name}": text}
    plan = make_plan(options, [("value", "binary")])

    with pytest.raises(BadSourceOption, match=reason):
        check_settings(plan)


def test_files_are_checked_in_tasks_only() -> None:
    options = {
        "topic": "t",
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.ca.location": "no/such/file",
    }
    plan = make_plan(options, [("value", "binary")])

    check_settings(plan)
    with pytest.raises(NotWritten, match=r"the producer could not be created: .*ssl.ca.location"):
        write(plan, [])
