"""The wheel, built from this checkout and installed into an environment of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.package.environment import ROOT, Environment


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that `python -m build` writes the wheel and the sdist to."""
    directory = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", f"{directory}"]
    subprocess.run([*build, f"{ROOT}"], check=True, capture_output=True)
    return directory


@pytest.fixture(scope="session")
def installed(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with the wheel and its dependencies, without any extra."""
    directory = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", f"{directory}"], check=True)
    (wheel,) = distributions.glob("*.whl")
    environment = Environment(directory)
    environment.install(f"{wheel}")
    return environment


@pytest.fixture(scope="session")
def with_pytest(installed: Environment) -> Environment:
    """The same environment, with pytest."""
    installed.install("pytest")
    return installed
