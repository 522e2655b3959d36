"""The jars are downloaded once, and are used only if their checksum is right."""

import hashlib
from pathlib import Path

import pytest

from tests.apache import jars, unavailable
from tests.apache.jars import Jar, fetch, pom_of, read_list
from tests.apache.unavailable import Unavailable

CONTENT = b"not really a jar"
JAR = Jar(
    group="org.example",
    artifact="thing",
    version="1.0",
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Maven repository in a directory, and an empty cache."""
    repository = tmp_path / "repository"
    path = repository / JAR.path
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    monkeypatch.setenv(jars.MAVEN_REPOSITORY, repository.as_uri())
    monkeypatch.setenv(jars.CACHE, f"{tmp_path / 'cache'}")
    return repository


def test_a_list_is_read_as_it_was_written() -> None:
    text = f"# A comment.\n\n{JAR}\n"

    assert read_list(text) == (JAR,)


@pytest.mark.parametrize("line", ["org.example:thing:1.0", "org.example:thing:1.0 abc", "thing"])
def test_an_invalid_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="group:artifact:version sha256"):
        read_list(line)


def test_the_list_contains_server_clients_and_tools() -> None:
    names = {jar.artifact for jar in jars.JARS if jar.version == jars.VERSION}

    assert {"kafka_2.13", "kafka-clients", "kafka-tools"} <= names


def test_a_jar_is_downloaded_once(repository: Path) -> None:
    home = fetch("thing", [JAR])
    (repository / JAR.path).unlink()

    assert fetch("thing", [JAR]) == home
    assert (home / JAR.path).read_bytes() == CONTENT


def test_a_jar_with_a_wrong_checksum_is_refused(repository: Path) -> None:
    (repository / JAR.path).write_bytes(b"something else")

    with pytest.raises(ValueError, match="checksum"):
        fetch("thing", [JAR])


def test_a_missing_jar_is_reported(repository: Path) -> None:
    (repository / JAR.path).unlink()

    with pytest.raises(Unavailable, match=r"thing-1\.0\.jar cannot be downloaded"):
        fetch("thing", [JAR])


@pytest.mark.usefixtures("repository")
def test_a_repository_without_https_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(jars.MAVEN_REPOSITORY, "http://example.com/maven")

    with pytest.raises(ValueError, match="https"):
        fetch("thing", [JAR])


@pytest.mark.usefixtures("repository")
def test_without_maven_and_repository_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(jars.MAVEN_REPOSITORY)
    monkeypatch.setenv("PATH", "")

    with pytest.raises(Unavailable, match=f"install Maven.*{jars.MAVEN_REPOSITORY}"):
        fetch("thing", [JAR])


def test_a_pom_excludes_transitive_dependencies() -> None:
    pom = pom_of([JAR])

    assert "<artifactId>thing</artifactId>" in pom
    assert "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>" in pom


def test_unavailable_jars_skip_a_test_and_fail_it_in_ci(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Java"):
        unavailable.skip(Unavailable("no Java"))

    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no Java"):
        unavailable.skip(Unavailable("no Java"))
