"""The pure parts of an ingest: consumer options, error messages, versions and masters."""

import pytest

from kohort.pipeline.errors import DataLost
from kohort.pipeline.ingest.error_text import explain, explain_text
from kohort.pipeline.ingest.options import read_consumer_options
from kohort.pipeline.session import (
    BadMaster,
    check_master,
    check_master_reachable,
    read_java_version,
)
from kohort.settings.readers import BadValue


def test_consumer_options_may_have_the_prefix_kafka() -> None:
    assert read_consumer_options(["kafka.client.id=x", "fetch.min.bytes=a=b"]) == {
        "client.id": "x",
        "fetch.min.bytes": "a=b",
    }


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["a=1", "a=2"], "a is given twice"),
        (["=1"], "is not NAME=VALUE"),
        (["kafka.group.id=1"], "use --group"),
    ],
)
def test_consumer_options_that_contradict_are_refused(arguments: list[str], reason: str) -> None:
    with pytest.raises(BadValue, match=reason):
        read_consumer_options(arguments)


STREAM_FAILED = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: \
[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python streaming data source perform \
latestOffset: Traceback (most recent call last):
  File "x.py", line 1, in latest_offset_func
    raise TopicNotFound("x")
kohort.pipeline.errors.TopicNotFound: topic x does not exist: create it, or correct its name
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
        (STREAM_FAILED, "topic x does not exist: create it, or correct its name"),
        (JOB_ABORTED, "No space left on device"),
        ("[PARSE_SYNTAX_ERROR] Syntax error at 'x'. SQLSTATE: 42601", "Syntax error at 'x'."),
        (CALL_FAILED, "Could not parse Master URL: 'x'"),
        ("plain words", "plain words"),
    ],
)
def test_the_reason_is_extracted_from_a_wrapped_error(text: str, sentence: str) -> None:
    assert explain_text(text) == sentence


def test_source_options_in_a_message_become_command_line_options() -> None:
    error = DataLost("offsets 1 to 2 are gone; failOnDataLoss=false continues without them")

    assert explain(error) == "offsets 1 to 2 are gone; --skip-lost continues without them"


def test_an_error_without_a_message_is_shown_by_its_class_name() -> None:
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
def test_the_java_version_is_read_from_all_known_formats(text: str, version: int | None) -> None:
    assert read_java_version(text) == version


@pytest.mark.parametrize(
    "master",
    ["local", "local[*]", "local[2,3]", "local-cluster[2,1,1024]", "spark://a:1,b:2", "yarn"],
)
def test_a_valid_master_url_is_accepted(master: str) -> None:
    check_master(master)


@pytest.mark.parametrize("master", ["", "locale", "local[x]", "spark://a", "http://a:1"])
def test_an_invalid_master_url_is_refused(master: str) -> None:
    with pytest.raises(BadMaster, match="is not a Spark master"):
        check_master(master)


def test_a_local_master_is_not_connected_to() -> None:
    check_master_reachable("local[*]")
