"""The jars of Apache Kafka: its server, clients and tools, in a cache.

`jars.txt` lists every jar with its checksum, so that all machines run the same bytes. They are
downloaded once: by Maven with its own settings, or over HTTPS from the repository in
KOHORT_MAVEN_REPOSITORY. The cache is outside of this repository: in KOHORT_KAFKA_CACHE, or in the
system's cache directory.

`python -m tests.apache.renew_jars` writes `jars.txt` for the newest release.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.apache.unavailable import Unavailable

LIST = Path(__file__).with_name("jars.txt")

MAVEN_REPOSITORY = "KOHORT_MAVEN_REPOSITORY"
CACHE = "KOHORT_KAFKA_CACHE"

_DEADLINE_S = 600
"""50 MB over a slow connection."""

POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>kohort</groupId>
  <artifactId>apache-kafka</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""

DEPENDENCY = """\
    <dependency>
      <groupId>{jar.group}</groupId>
      <artifactId>{jar.artifact}</artifactId>
      <version>{jar.version}</version>
      <exclusions>
        <exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>
      </exclusions>
    </dependency>"""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Jar:
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def path(self) -> str:
        """The path in a Maven repository."""
        name = f"{self.artifact}-{self.version}.jar"
        return "/".join((*self.group.split("."), self.artifact, self.version, name))

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version} {self.sha256}"


def read_list(text: str) -> tuple[Jar, ...]:
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return tuple(_read_line(line) for line in lines)


def _read_line(line: str) -> Jar:
    found = re.fullmatch(r"([\w.-]+):([\w.-]+):([\w.-]+) ([0-9a-f]{64})", line)
    if found is None:
        raise ValueError(f"not `group:artifact:version sha256`: {line}")
    group, artifact, version, sha256 = found.groups()
    return Jar(group=group, artifact=artifact, version=version, sha256=sha256)


JARS = read_list(LIST.read_text("utf-8"))

(VERSION,) = (jar.version for jar in JARS if jar.artifact == "kafka-clients")


_FAILURES: dict[Path, Unavailable] = {}
"""A failed download is not tried again, because timeouts take long."""


def find_classpath() -> tuple[Path, ...]:
    """All jars, downloaded and checked if necessary; raises Unavailable."""
    home = find_home()
    return tuple(home / jar.path for jar in JARS)


def find_home() -> Path:
    """The cache directory of the jars; it also contains classes compiled with them."""
    return fetch(f"kafka-{VERSION}", JARS)


def fetch(name: str, jars: Sequence[Jar]) -> Path:
    """The cache directory of these jars, downloaded if necessary; raises Unavailable."""
    home = _cache_home() / f"{name}-{_digest(jars)}"
    if not home.exists():
        home.parent.mkdir(parents=True, exist_ok=True)
        with _only_one(home.parent / "lock"):
            if home in _FAILURES:
                raise _FAILURES[home]
            if not home.exists():
                try:
                    _fill(home, jars)
                except Unavailable as failure:
                    _FAILURES[home] = failure
                    raise
    return home


def clients_only(classpath: Sequence[Path]) -> tuple[Path, ...]:
    """The part of a classpath that Kafka's clients need."""
    codecs = {"lz4-java", "snappy-java", "zstd-jni"}
    json = {"jackson-core", "jackson-databind", "jackson-annotations"}
    needed = {"kafka-clients", "slf4j-api", "slf4j-simple"} | codecs | json
    named = zip(JARS, classpath, strict=True)
    return tuple(path for jar, path in named if jar.artifact in needed)


def _cache_home() -> Path:
    if named := os.environ.get(CACHE):
        return Path(named)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "kohort"


def _digest(jars: Sequence[Jar]) -> str:
    return hashlib.sha256("\n".join(map(str, jars)).encode()).hexdigest()[:12]


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Two processes must not write the same cache."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fill(home: Path, jars: Sequence[Jar]) -> None:
    # Renamed at the end, so that an interrupted download is never used.
    with tempfile.TemporaryDirectory(dir=home.parent, prefix="download-") as name:
        fetched = Path(name) / "jars"
        fetched.mkdir()
        if address := os.environ.get(MAVEN_REPOSITORY):
            _download(address, jars, fetched)
        else:
            copy_by_maven(pom_of(jars), fetched)
        for jar in jars:
            _check(jar, fetched / jar.path)
        fetched.rename(home)


def _check(jar: Jar, path: Path) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != jar.sha256:
        raise ValueError(f"{jar.path} has the checksum {found}, expected {jar.sha256}")


# With Maven


def pom_of(jars: Sequence[Jar]) -> str:
    """A pom with these jars and no transitive dependencies; the list contains those."""
    return POM.format(dependencies="\n".join(DEPENDENCY.format(jar=jar) for jar in jars))


def copy_by_maven(pom: str, target: Path) -> None:
    """Copy the dependencies of a pom, in the layout of a Maven repository."""
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable(
            f"Apache Kafka's jars are not in {_cache_home()}: install Maven to download them, or"
            f" name a Maven repository in {MAVEN_REPOSITORY}"
        )
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "pom.xml").write_text(pom, "utf-8")
        arguments = [maven, "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"]
        arguments += [f"-DoutputDirectory={target}", "-Dmdep.useRepositoryLayout=true"]
        try:
            ended = subprocess.run(
                arguments,
                cwd=name,
                capture_output=True,
                text=True,
                timeout=_DEADLINE_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"Maven did not download the jars in {_DEADLINE_S} s") from error
    if ended.returncode != 0:
        errors = [line for line in ended.stdout.splitlines() if "[ERROR]" in line] or [ended.stdout]
        raise Unavailable(f"Maven could not download the jars: {errors[0].strip()}")


# Over HTTPS


def _download(address: str, jars: Sequence[Jar], target: Path) -> None:
    if urllib.parse.urlsplit(address).scheme not in ("https", "file"):
        raise ValueError(f"{MAVEN_REPOSITORY} must be an https:// URL, not {address}")
    for jar in jars:
        path = target / jar.path
        path.parent.mkdir(parents=True, exist_ok=True)
        url = f"{address.rstrip('/')}/{jar.path}"
        try:
            response = urllib.request.urlopen(url, timeout=60)  # noqa: S310  # checked above
            with response, path.open("wb") as file:
                shutil.copyfileobj(response, file)
        except (urllib.error.URLError, TimeoutError) as error:
            raise Unavailable(f"{jar.path} cannot be downloaded from {address}: {error}") from error
