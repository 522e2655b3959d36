"""docs/reference/tools.md names every tool of Kafka, and those it calls working are tested."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apache.jars import JARS, find_classpath
from tests.apache.unavailable import Unavailable, skip
from tests.contract.tools import tool_table
from tests.contract.tools.tool_table import TOOLS, Tool, Verdict, page
from tests.tidy.repository import read

TESTS = "".join(
    path.read_text("utf-8")
    for path in Path(__file__).parent.glob("*.py")
    if path.name != Path(tool_table.__file__).name
)

NOT_TOOLS = {"kafka.Kafka", "kafka.docker.KafkaDockerWrapper", "kafka.server.KafkaConfig"} | {
    "kafka.tools.StorageTool",
    "kafka.tools.TestRaftServer",
}
"""The server itself, and the tools that start it."""


def mains_in(path: Path) -> Iterator[str]:
    """The classes of a jar that have a main method."""
    with zipfile.ZipFile(path) as jar:
        for name in jar.namelist():
            if name.endswith(".class") and "$" not in name:
                content = jar.read(name)
                if b"\x00\x04main" in content and b"([Ljava/lang/String;)V" in content:
                    yield name.removesuffix(".class").replace("/", ".")


def test_the_page_is_made_from_the_table() -> None:
    renew = "python -m tests.contract.tools.tool_table > docs/reference/tools.md"

    assert read("docs/reference/tools.md") == page(), f"stale: run `{renew}`"


def test_every_tool_of_kafka_is_in_the_table() -> None:
    try:
        classpath = find_classpath()
    except Unavailable as reason:
        skip(reason)
    named = zip(JARS, classpath, strict=True)

    found = {
        main
        for jar, path in named
        if jar.artifact in ("kafka-tools", "kafka_2.13")
        for main in mains_in(path)
    }

    assert found - NOT_TOOLS == {tool.main for tool in TOOLS}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_that_works_is_named_in_a_test(tool: Tool) -> None:
    is_run = f'"{tool.name}' in TESTS

    assert is_run is (tool.verdict is not Verdict.LEFT_OUT)


def test_each_tool_has_one_name() -> None:
    assert len({tool.name for tool in TOOLS}) == len({tool.main for tool in TOOLS}) == len(TOOLS)
