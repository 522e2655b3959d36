"""A missing optional dependency is reported in one sentence, never with a traceback."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from kohort.extras import EXTRAS, MissingExtra, missing_extra, require_extra
from tests.tidy.repository import ROOT

BLOCKER = """
import os, sys

blocked = os.environ["BLOCKED"].split(",")

class Filter:
    def __init__(self, finder):
        self._finder = finder

    def __getattr__(self, name):
        return getattr(self._finder, name)

    def find_spec(self, name, *args):
        return None if name.partition(".")[0] in blocked else self._finder.find_spec(name, *args)

sys.meta_path[:] = map(Filter, sys.meta_path)
"""
"""A sitecustomize module, which makes packages look as if they were not installed."""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    directory = tmp_path / "site"
    directory.mkdir()
    (directory / "sitecustomize.py").write_text(BLOCKER, "utf-8")
    return directory


def environment(site: Path, *packages: str) -> Mapping[str, str]:
    return {**os.environ, "PYTHONPATH": str(site), "BLOCKED": ",".join(packages)}


def run(site: Path, package: str, *args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "kohort", *args],
        cwd=ROOT,
        env=environment(site, package),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


BOOTSTRAP = ("--bootstrap", "127.0.0.1:1")
INGEST = (*BOOTSTRAP, "--topic", "t", "--group", "g", "--to", "table")


@pytest.mark.parametrize(
    ("package", "extra", "args", "command"),
    [
        ("starlette", "console", ("console",), "kohort console"),
        ("jinja2", "console", ("console",), "kohort console"),
        ("uvicorn", "console", ("serve", "--console", "127.0.0.1:0"), "kohort serve"),
        ("uvicorn", "console", ("demo",), "kohort demo"),
        ("confluent_kafka", "cli", ("produce", "t", *BOOTSTRAP), "kohort produce"),
        ("confluent_kafka", "cli", ("demo",), "kohort demo"),
        ("rich", "cli", ("groups", "watch", "g", *BOOTSTRAP), "kohort groups watch"),
        ("rich", "cli", ("migrate", "--from", "a:1", "--to", "b:1"), "kohort migrate"),
    ],
)
def test_command_names_the_missing_extra(
    site: Path, package: str, extra: str, args: tuple[str, ...], command: str
) -> None:
    result = run(site, package, *args)

    sentence = f"kohort: {command} needs the extra \"{extra}\": pip install 'kohort[{extra}]'\n"
    assert (result.returncode, result.stdout, result.stderr) == (1, "", sentence)


@pytest.mark.parametrize("package", ["pyspark", "pyarrow", "pandas", "numba"])
@pytest.mark.parametrize(
    "args", [("ingest", *INGEST), ("forensics", *BOOTSTRAP, "--to", "tables")], ids=lambda a: a[0]
)
def test_pipeline_commands_name_the_spark_extra(
    site: Path, package: str, args: tuple[str, ...]
) -> None:
    result = run(site, package, "pipeline", *args)

    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("kohort: ")
    assert result.stderr.endswith("pip install 'kohort[spark]'\n")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("args", [(), ("--version",), ("groups", "list"), ("serve", "--help")])
def test_missing_typer_is_reported_by_every_command(site: Path, args: tuple[str, ...]) -> None:
    result = run(site, "typer", *args)

    sentence = "kohort: kohort needs the extra \"cli\": pip install 'kohort[cli]'\n"
    assert (result.returncode, result.stdout, result.stderr) == (2, "", sentence)


def test_serve_needs_no_optional_package(site: Path, tmp_path: Path) -> None:
    args = ("serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data"))
    with subprocess.Popen(
        [sys.executable, "-m", "kohort", *args],
        cwd=ROOT,
        env=environment(site, *EXTRAS),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        ready = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=30)

    assert ready.startswith("kohort ready on 127.0.0.1:")
    assert process.returncode == 0
    assert "Traceback" not in stderr


@pytest.mark.parametrize("args", [(), ("--",)], ids=["without Typer", "with Typer"])
def test_serve_with_metrics_needs_prometheus_client(
    site: Path, tmp_path: Path, args: tuple[str, ...]
) -> None:
    where = ("--listen", "127.0.0.1:0", "--data", str(tmp_path / "data"))

    result = run(site, "prometheus_client", "serve", *where, "--metrics", "127.0.0.1:0", *args)

    sentence = (
        "kohort: the metrics page of a node needs the extra \"cli\": pip install 'kohort[cli]'"
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == sentence
    assert "Traceback" not in result.stderr


def test_group_help_works_without_the_packages_of_its_commands(site: Path) -> None:
    result = run(site, "confluent_kafka", "--help")

    assert result.returncode == 0
    assert "produce" in result.stdout


# The helper


def test_submodule_of_a_package_belongs_to_its_extra() -> None:
    error = ModuleNotFoundError("No module named 'pyspark.sql'", name="pyspark.sql")

    missing = missing_extra(error, "KohortDataSource")

    assert str(missing) == "KohortDataSource needs the extra \"spark\": pip install 'kohort[spark]'"


@pytest.mark.parametrize("name", ["kohort.nothing", "json", None])
def test_other_import_errors_are_raised_unchanged(name: str | None) -> None:
    error = ImportError("no", name=name)

    with pytest.raises(ImportError) as raised, require_extra("kohort"):
        raise error

    assert raised.value is error


def test_innermost_user_is_named() -> None:
    with (
        pytest.raises(MissingExtra, match=r"^Console needs"),
        require_extra("kohort console"),
        require_extra("Console"),
    ):
        raise ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn")
