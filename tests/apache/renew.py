"""Writes jars.txt anew, for the newest Apache Kafka 4: `python -m tests.apache.renew`."""

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.apache.jars import DEPENDENCY, LIST, POM, Jar, copy_by_maven, pom_of

ROOTS = ("kafka_2.13", "kafka-tools", "kafka-clients")

LOGGER = Jar(group="org.slf4j", artifact="slf4j-simple", version="1.7.36", sha256="")
"""What the server has to say goes to its standard error; by itself it would say nothing."""

HEAD = """\
# Every jar of an Apache Kafka: server, clients and tools, with what they need.
# Written by `python -m tests.apache.renew`; not edited by hand.
"""


def main() -> None:
    # Asked of the server, which is published after the clients.
    newest = Jar(group="org.apache.kafka", artifact=ROOTS[0], version="[4,5)", sha256="")
    (server,) = _resolve(pom_of([newest]))
    roots = [
        f"<dependency><groupId>org.apache.kafka</groupId><artifactId>{name}</artifactId>"
        f"<version>{server.version}</version></dependency>"
        for name in ROOTS
    ]
    jars = _resolve(POM.format(dependencies="\n".join([*roots, DEPENDENCY.format(jar=LOGGER)])))
    LIST.write_text(HEAD + "".join(f"{jar}\n" for jar in jars), "utf-8")
    print(f"Apache Kafka {server.version}: {len(jars)} jars")


def _resolve(pom: str) -> Sequence[Jar]:
    with tempfile.TemporaryDirectory() as name:
        target = Path(name)
        copy_by_maven(pom, target)
        return sorted(_describe(path, target) for path in target.rglob("*.jar"))


def _describe(path: Path, root: Path) -> Jar:
    *group, artifact, version, _ = path.relative_to(root).parts
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    jar = Jar(group=".".join(group), artifact=artifact, version=version, sha256=sha256)
    assert path == root / jar.path, "a jar with a classifier, which the list cannot say"
    return jar


if __name__ == "__main__":
    main()
