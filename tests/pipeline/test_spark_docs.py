"""The program of docs/guide/spark.md runs word for word, and prints no traceback."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "spark.md"
TIMEOUT_S = 600

pytestmark = pytest.mark.full


def first_block(language: str) -> str:
    pattern = rf"^```{language}\n(.*?)^```$"
    found = re.search(pattern, PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """The program after the page's export line; the PATH has another python3, or none.

    Its limit() makes Spark close the connection of a worker that still sends records.
    """
    directory = tmp_path_factory.mktemp("program")
    program = directory / "program.py"
    program.write_text(first_block("python"), "utf-8")
    (export,) = re.findall(r"^export .*$", first_block(""), re.MULTILINE)
    own = str(Path(sys.executable).parent)
    path = os.pathsep.join(each for each in os.get_exec_path() if each != own)
    return subprocess.run(
        [
            "/bin/sh",
            "-ec",
            f'PATH="{own}:{path}"; {export}; PATH="{path}"; exec "$PYSPARK_PYTHON" program.py',
        ],
        cwd=directory,
        env={name: text for name, text in os.environ.items() if name != "PYSPARK_PYTHON"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def test_the_program_of_the_page_runs(finished: subprocess.CompletedProcess[str]) -> None:
    assert finished.returncode == 0, finished.stderr
    assert re.findall(r"order \d+", finished.stdout) == ["order 0", "order 1", "order 10"]
    assert "3 of 100000 records" in finished.stdout
    assert "|orders|100000|" in finished.stdout


def test_a_successful_program_prints_no_traceback(
    finished: subprocess.CompletedProcess[str],
) -> None:
    assert "Traceback" not in finished.stderr
    assert "BrokenPipeError" not in finished.stderr
