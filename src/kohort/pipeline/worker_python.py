"""Check the Python interpreter of Spark's workers before the first job.

Without PYSPARK_PYTHON, workers run the first `python3` of the PATH. If that is not the driver's
environment, the first job fails with a long traceback that ends in "No module named 'kohort'".
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING, Final

from kohort.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PROBE: Final = (
    "import sys; print('%d.%d' % sys.version_info[:2]); import kohort; print(kohort.__version__)"
)
_PROBE_S: Final = 60


class WrongWorkerPython(PipelineError):
    """Spark's workers run a Python that differs from the driver's or lacks this Kohort."""


def check_session_python(spark: "SparkSession") -> None:
    """Raise WrongWorkerPython if the workers of this session cannot run Kohort."""
    # A Spark Connect session has no context: its workers belong to a server.
    context = getattr(spark, "sparkContext", None)
    # addPyFile may have given Kohort to the workers.
    if context is not None and not context._python_includes:  # noqa: SLF001
        check_worker_python(context.pythonExec, context.master)


def check_worker_python(python: str, master: str) -> None:
    """Check a local master's interpreter by running it. On a cluster it is on other machines."""
    if not is_local(master):
        return
    path = shutil.which(python)
    if path is None:
        raise _wrong(f"{python}, which does not exist")
    if os.path.abspath(path) != os.path.abspath(sys.executable):  # noqa: PTH100  # no symlinks
        _check_interpreter(path)


def is_local(master: str) -> bool:
    return master.startswith("local") and not master.startswith("local-cluster")


@cache
def _check_interpreter(path: str) -> None:
    try:
        finished = subprocess.run(  # noqa: S603  # the interpreter that Spark is about to start
            [path, "-c", _PROBE], capture_output=True, text=True, timeout=_PROBE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _wrong(f"{path}, which does not run ({error})") from error
    version, _, found = finished.stdout.strip().partition("\n")
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    if version != own:
        raise _wrong(f"{path} (Python {version or 'unknown'}), and this program runs Python {own}")
    if not found:
        raise _wrong(f"{path}, which cannot import kohort")
    # The package itself is not imported here: its public names include the node.
    kohort_version = sys.modules["kohort"].__version__
    if found != kohort_version:
        raise _wrong(f"{path} with Kohort {found}, and this program has {kohort_version}")


def _wrong(what: str) -> WrongWorkerPython:
    return WrongWorkerPython(
        f"Spark's Python workers would run {what}; before you start the program, run: "
        f"export PYSPARK_PYTHON={sys.executable}"
    )
