"""Every behaviour on every broker with every library; expected_results.py says which lack it."""

from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

import pytest

from tests.contract.brokers import APACHE, BROKERS, IN_PROCESS, Brokers
from tests.contract.cluster import Cluster
from tests.contract.expected_results import find_claim
from tests.contract.libraries import every_library
from tests.contract.matrix import Matrix
from tests.contract.parallel_cells import ParallelCells, is_cell

RUNNER = pytest.StashKey[ParallelCells]()
MATRIX = pytest.StashKey[Matrix]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--matrix", type=Path, help="write the compatibility table to this file")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*features): features that a library may lack")
    config.addinivalue_line("markers", "differs(reason, ...): what Kohort does not support")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "library" in metafunc.fixturenames:
        metafunc.parametrize("library", every_library(), ids=lambda library: library.name)
    metafunc.parametrize("cluster", BROKERS, indirect=True)


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    cells = [item for item in items if is_cell(item)]
    for item in cells:
        if not is_everyday(item.callspec.params):
            item.add_marker(pytest.mark.full)
        claim = find_claim(item)
        if claim.raises is not None:
            mark = pytest.mark.xfail(reason=claim.reason, raises=claim.raises, strict=True)
            item.add_marker(mark)
    config.stash[MATRIX] = Matrix(cells)


def is_everyday(params: Mapping[str, object]) -> bool:
    """Whether `make test` includes this cell.

    The others contain no Kohort, or the same broker as another cell: they are `full`.
    """
    broker, library = params["cluster"], params.get("library")
    if broker == APACHE:
        return getattr(library, "name", None) == "kohort.Consumer"
    return broker != IN_PROCESS


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if is_cell(item):
        item.config.stash[MATRIX].record(item, report)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    path: Path | None = config.getoption("--matrix", default=None)
    if path is None:
        return
    matrix, libraries = config.stash[MATRIX], every_library()
    if config.getoption("--collect-only"):
        path.write_text(matrix.expected_page(libraries), "utf-8")
    elif matrix.missing:
        raise pytest.UsageError(f"{path} is not written: {matrix.missing} cells did not run")
    else:
        path.write_text(matrix.actual_page(libraries), "utf-8")


@pytest.fixture(scope="package")
def brokers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Brokers]:
    brokers = Brokers(tmp_path_factory.mktemp("contract"))
    runner = ParallelCells(brokers)
    request.session.stash[RUNNER] = runner
    yield brokers
    runner.close()
    brokers.stop()


@pytest.fixture
def cluster(request: pytest.FixtureRequest, brokers: Brokers) -> Cluster:
    return brokers.get(request.param)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool:
    pyfuncitem.session.stash[RUNNER].call(pyfuncitem)
    return True
