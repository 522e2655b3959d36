"""The pure parts of an ingest: what is asked for, and sentences out of what Spark says."""

import pytest

from kohort.pipeline.errors import DataLost
from kohort.pipeline.ingest.explaining import explain, explain_text
from kohort.pipeline.ingest.wish import BadWish, read_kafka, read_names, read_seconds
from kohort.pipeline.session import BadMaster, check_master, reach_master, read_java_version


@pytest.mark.parametrize(
    ("text", "seconds"), [("5s", 5), ("500ms", 0.5), ("1.5m", 90), ("2", 2), (" 3 s ", 3)]
)
def test_times_are_read_with_their_units(text: str, seconds: float) -> None:
    assert read_seconds(text) == seconds


def test_names_are_parted_by_commas() -> None:
    assert read_names(" a, b,,c ") == ("a", "b", "c")


def test_consumer_options_may_say_that_they_are_kafkas() -> None:
    assert read_kafka(["kafka.client.id=x", "fetch.min.bytes=a=b"]) == {
        "client.id": "x",
        "fetch.min.bytes": "a=b",
    }


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["a=1", "a=2"], "a is given twice"),
        (["=1"], "no NAME=VALUE"),
        (["kafka.group.id=1"], "--group"),
    ],
)
def test_consumer_options_that_contradict_are_refused(words: list[str], reason: str) -> None:
    with pytest.raises(BadWish, match=reason):
        read_kafka(words)


STREAM_FAILED = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: \
[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python streaming data source perform \
latestOffset: Traceback (most recent call last):
  File "x.py", line 1, in latest_offset_func
    raise NoSuchTopic("x")
kohort.pipeline.errors.NoSuchTopic: topic x does not exist: create it, or mend its name
 SQLSTATE: 38000 SQLSTATE: XXKST"""

JOB_ABORTED = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Job aborted \
due to stage failure: Task 0 in stage 1.0 failed 1 times: java.lang.IllegalStateException: no
Driver stacktrace: SQLSTATE: XXKST
	at org.apache.spark.Foo.bar(Foo.scala:1)
Caused by: java.io.IOException: No space left on device
	at java.base/java.io.FileOutputStream.writeBytes(Native Method)"""

CALL_FAILED = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: Could not parse Master URL: 'x'
	at org.apache.spark.SparkContext.createTaskScheduler(SparkContext.scala:1)"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (STREAM_FAILED, "topic x does not exist: create it, or mend its name"),
        (JOB_ABORTED, "No space left on device"),
        ("[PARSE_SYNTAX_ERROR] Syntax error at 'x'. SQLSTATE: 42601", "Syntax error at 'x'."),
        (CALL_FAILED, "Could not parse Master URL: 'x'"),
        ("plain words", "plain words"),
    ],
)
def test_what_spark_wraps_is_unwrapped(text: str, sentence: str) -> None:
    assert explain_text(text) == sentence


def test_options_of_the_source_are_told_as_the_command_has_them() -> None:
    error = DataLost("offsets 1 to 2 are gone; failOnDataLoss=false goes on without them")

    assert explain(error) == "offsets 1 to 2 are gone; --skip-lost goes on without them"


def test_an_error_without_words_is_called_by_its_name() -> None:
    assert explain(ZeroDivisionError()) == "ZeroDivisionError"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_292"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("bash: no such thing", None),
    ],
)
def test_java_tells_its_version_in_several_ways(text: str, version: int | None) -> None:
    assert read_java_version(text) == version


@pytest.mark.parametrize(
    "master",
    ["local", "local[*]", "local[2,3]", "local-cluster[2,1,1024]", "spark://a:1,b:2", "yarn"],
)
def test_masters_are_known_by_their_form(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize("master", ["", "locale", "local[x]", "spark://a", "http://a:1"])
def test_what_is_no_master_is_refused(master: str) -> None:
    with pytest.raises(BadMaster, match="no master of Spark's"):
        check_master(master)


def test_a_local_master_needs_no_network() -> None:
    reach_master("local[*]")
