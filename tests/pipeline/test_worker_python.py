"""The Python of Spark's workers is checked before the first job. No JVM starts here."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kohort.pipeline import worker_python
from kohort.pipeline.session import SessionOptions, open_session
from kohort.pipeline.worker_python import (
    WrongWorkerPython,
    check_session_python,
    check_worker_python,
)

REMEDY = f"export PYSPARK_PYTHON={sys.executable}"


@pytest.fixture(autouse=True)
def no_cache() -> None:
    worker_python._check_interpreter.cache_clear()  # noqa: SLF001


def write_python(directory: Path, script: str) -> str:
    path = directory / "python3"
    path.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
    path.chmod(0o755)
    return str(path)


def session(python: str, master: str = "local[2]", files: tuple[str, ...] = ()) -> Any:
    context = SimpleNamespace(pythonExec=python, master=master, _python_includes=list(files))
    return SimpleNamespace(sparkContext=context)


def test_the_driver_s_own_interpreter_is_accepted_without_running_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subprocess, "run", None)

    check_worker_python(sys.executable, "local[*]")


def test_another_interpreter_with_the_same_kohort_is_accepted(tmp_path: Path) -> None:
    python = write_python(tmp_path, f'exec "{sys.executable}" "$@"')

    check_worker_python(python, "local[*]")


def test_an_interpreter_without_kohort_is_refused_with_the_line_that_helps(tmp_path: Path) -> None:
    # -I hides the environment variables, and the working directory; -S hides site-packages.
    python = write_python(tmp_path, f'exec "{sys.executable}" -I -S "$@"')

    with pytest.raises(WrongWorkerPython, match=f"{python}, which cannot import kohort") as caught:
        check_worker_python(python, "local[*]")

    assert str(caught.value).endswith(REMEDY)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 2.7", r"\(Python 2\.7\), and this program runs Python 3"),
        ("printf '%d.%d\\n0.0.1\\n' {major} {minor}", "with Kohort 0.0.1, and this program has"),
        ("exit 1", r"\(Python unknown\)"),
    ],
)
def test_another_version_of_python_or_kohort_is_refused(
    tmp_path: Path, script: str, reason: str
) -> None:
    version = {"major": sys.version_info.major, "minor": sys.version_info.minor}
    python = write_python(tmp_path, script.format(**version))

    with pytest.raises(WrongWorkerPython, match=reason):
        check_worker_python(python, "local")


def test_an_interpreter_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongWorkerPython, match="which does not exist"):
        check_worker_python(str(tmp_path / "none"), "local[1]")


@pytest.mark.parametrize("master", ["yarn", "spark://host:7077", "local-cluster[2,1,1024]"])
def test_a_cluster_s_interpreter_is_not_checked(master: str) -> None:
    check_worker_python("/not/on/this/machine", master)


def test_a_session_is_checked_by_its_own_interpreter_and_master() -> None:
    with pytest.raises(WrongWorkerPython):
        check_session_python(session("/none"))

    check_session_python(session("/none", "yarn"))
    check_session_python(session("/none", files=("kohort.zip",)))
    check_session_python(SimpleNamespace())  # type: ignore[arg-type]  # a Spark Connect session


def test_our_own_session_checks_pyspark_python_before_java_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(os.environ, "PYSPARK_PYTHON", str(tmp_path / "none"))
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    monkeypatch.setattr("kohort.pipeline.session.check_java", None)

    with (
        pytest.raises(WrongWorkerPython, match="which does not exist"),
        open_session(SessionOptions(app_name="test", master="local[1]")),
    ):
        pass
