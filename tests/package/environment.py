"""A virtual environment in which nothing of this checkout can be imported."""

import os
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CONSTRAINTS: Final = ROOT / "constraints.txt"


class Environment:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def command(self, name: str, *arguments: str) -> list[str]:
        return [f"{self._directory / 'bin' / name}", *arguments]

    def install(self, *requirements: str) -> None:
        """With the versions of constraints.txt."""
        subprocess.run(
            self.command("python", "-m", "pip", "install", "--quiet", *requirements),
            check=True,
            env={
                **os.environ,
                "PIP_CONSTRAINT": f"{CONSTRAINTS}",
                "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            },
        )

    def run(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(name, *arguments),
            capture_output=True,
            text=True,
            check=False,
            cwd=self._directory,
            env=self.variables,
            timeout=60,
        )

    @property
    def variables(self) -> dict[str, str]:
        return {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
