"""The installed package: what the wheel contains, and what works without any extra."""

import re
import signal
import subprocess
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import kohort
from kohort.cli.app import COMMANDS
from tests.package.environment import ROOT, Environment
from tests.testing.guide_programs import TESTS, write_tests

NEEDS_AN_EXTRA = sorted(set(COMMANDS) - {"serve"})


def first_example() -> str:
    found = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert found, "README.md has no Python example"
    return found.group(1)


def test_the_wheel_contains_the_package_the_spark_source_and_the_licence(
    distributions: Path,
) -> None:
    (wheel,) = distributions.glob("*.whl")

    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()

    assert "kohort/py.typed" in names
    assert "pyspark_kohort/__init__.py" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.startswith("kohort/console/templates/") for name in names)
    packages = {name.split("/")[0] for name in names}
    assert packages == {"kohort", "pyspark_kohort", f"kohort-{kohort.__version__}.dist-info"}


def test_the_sdist_builds_without_the_tests(distributions: Path) -> None:
    (sdist,) = distributions.glob("*.tar.gz")

    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {"pyproject.toml", "LICENSE", "README.md", "src/kohort/__init__.py"} <= names
    assert not [name for name in names if name.startswith(("tests/", "bench/", "docs/"))]


def test_the_metadata_names_licence_authors_and_extras(distributions: Path) -> None:
    (wheel,) = distributions.glob("*.whl")

    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())

    assert metadata["Version"] == kohort.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Author"] == "The Kohort developers"
    assert {"cli", "console", "admin", "spark", "all"} <= set(
        metadata.get_all("Provides-Extra", [])
    )
    base = [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]
    assert sorted(base) == ["cramjam", "crc32c", "lz4", "zstandard"]


def test_the_public_names_are_all_there(installed: Environment) -> None:
    program = "import kohort; print(*[getattr(kohort, n) and n for n in dir(kohort)])"

    ended = installed.run("python", "-c", program)

    assert ended.stderr == ""
    assert ended.stdout.split() == sorted([*kohort.__all__, "__version__"])


def test_the_first_example_of_the_readme_runs(installed: Environment) -> None:
    ended = installed.run("python", "-c", first_example())

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout


@pytest.mark.parametrize("make", ["kohort.Node", "kohort.Node.process"])
def test_a_node_needs_no_extra(installed: Environment, make: str) -> None:
    ended = installed.run(
        "python", "-c", f"import kohort\nwith {make}() as node: node.reset(); node.restart()"
    )

    assert (ended.returncode, ended.stderr) == (0, "")


def test_kohort_serve_runs_until_sigterm(installed: Environment, tmp_path: Path) -> None:
    words = ("serve", "--listen", "127.0.0.1:0", "--data", f"{tmp_path / 'data'}")
    with subprocess.Popen(
        installed.command("kohort", *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=installed.variables,
    ) as node:
        assert node.stdout is not None
        ready = node.stdout.readline()
        node.send_signal(signal.SIGTERM)
        node.wait(30)

    assert ready.startswith("kohort ready on 127.0.0.1:")
    assert node.returncode == 0


@pytest.mark.parametrize("name", NEEDS_AN_EXTRA)
def test_a_command_whose_extra_is_missing_says_which_in_one_sentence(
    installed: Environment, name: str
) -> None:
    ended = installed.run("kohort", name, "--help")

    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert re.search(r"pip install '?kohort\[\w+\]'?", ended.stderr), ended.stderr
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("program", "extra"),
    [
        ("from kohort.console import Console", "console"),
        ("import kohort; kohort.Node(metrics='127.0.0.1:0').start()", "cli"),
        ("import kohort.pipeline; kohort.pipeline.register(None)", "spark"),
    ],
)
def test_an_api_whose_extra_is_missing_names_it_in_one_sentence(
    installed: Environment, program: str, extra: str
) -> None:
    ended = installed.run("python", "-c", program)

    last = ended.stderr.splitlines()[-1]
    assert f"pip install 'kohort[{extra}]'" in last


def test_the_tests_of_the_guide_pass_without_any_extra_or_configuration(
    with_pytest: Environment, tmp_path: Path
) -> None:
    write_tests(tmp_path)

    ended = with_pytest.run("pytest", "-W", "error", "-p", "no:cacheprovider", f"{tmp_path}")

    assert (ended.returncode, ended.stderr) == (0, ""), ended.stdout
    assert f"kohort-{kohort.__version__}" in ended.stdout
    assert f" {len(TESTS)} passed in " in ended.stdout


def test_a_failed_test_shows_its_rebalances_without_any_extra(
    with_pytest: Environment, tmp_path: Path
) -> None:
    write_tests(tmp_path)
    test = tmp_path / "test_0.py"
    test.write_text(test.read_text("utf-8").replace("members=1", "members=2, timeout=0.2"), "utf-8")

    ended = with_pytest.run("pytest", "-p", "no:cacheprovider", f"{test}")

    assert ended.returncode == 1
    assert "has 1 member, 2 were expected" in ended.stdout
    assert "- Rebalances (call) -" in ended.stdout
