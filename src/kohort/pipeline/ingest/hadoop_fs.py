"""Files through Hadoop's API: a local disk, HDFS, or any store that Spark is configured for.

Never uses the driver's own disk directly, which workers may not see.
"""

from typing import TYPE_CHECKING, Any

from kohort.pipeline.errors import PipelineError
from kohort.pipeline.ingest.error_text import explain_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FileSystemFailure(PipelineError):
    """A file system operation failed; the message has the path and the reason."""


class HadoopFiles:
    """A directory tree. Names are relative to its root, with slashes."""

    def __init__(self, spark: "SparkSession", root: str) -> None:
        # Only the JVM gives access to Hadoop's files.
        context: Any = spark.sparkContext
        self._jvm = context._jvm  # noqa: SLF001
        self._conf = context._jsc.hadoopConfiguration()  # noqa: SLF001
        try:
            given = self._jvm.org.apache.hadoop.fs.Path(root)
            self._system = given.getFileSystem(self._conf)
            self._root = self._system.makeQualified(given)
        except Exception as error:  # py4j wraps any Java exception
            raise FileSystemFailure(f"{root!r} cannot be used: {_reason(error)}") from error

    @property
    def root(self) -> str:
        return str(self._root.toString())

    def address(self, name: str) -> str:
        return str(self._path(name).toString())

    def exists(self, name: str = "") -> bool:
        return bool(self._do("checked", name, self._system.exists))

    def names(self, name: str = "") -> list[str]:
        """The names in a directory, unordered; empty if it does not exist."""
        if not self.exists(name):
            return []
        found = self._do("listed", name, self._system.listStatus)
        return [str(each.getPath().getName()) for each in found]

    def make_directory(self, name: str = "") -> None:
        if not self._do("created", name, self._system.mkdirs):
            raise FileSystemFailure(f"{self.address(name)} cannot be created")

    def delete(self, name: str) -> None:
        """Delete recursively; do nothing if it does not exist."""
        if self.exists(name):
            self._do("deleted", name, lambda path: self._system.delete(path, True))  # noqa: FBT003

    def move(self, name: str, to: str) -> None:
        """Atomic, if the file system supports it. `to` must not exist."""
        self.make_directory(to.rpartition("/")[0])
        # Hadoop moves into an existing directory and reports success.
        if self.exists(to):
            raise FileSystemFailure(f"{self.address(to)} already exists")
        target = self._path(to)
        if not self._do("moved", name, lambda path: self._system.rename(path, target)):
            raise FileSystemFailure(f"{self.address(name)} cannot be moved to {target.toString()}")

    def read(self, name: str) -> str:
        return str(self._do("read", name, self._read))

    def write(self, name: str, text: str) -> None:
        """Replace the file atomically."""
        temporary = f"{name}.new"
        self._do("written", temporary, lambda path: self._write(path, text))
        self._do("written", name, lambda path: self._replace(self._path(temporary), path))

    def _read(self, path: Any) -> str:
        stream = self._system.open(path)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
        finally:
            stream.close()

    def _write(self, path: Any, text: str) -> None:
        stream = self._system.create(path, True)  # noqa: FBT003  # overwrite what a crash left
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def _replace(self, path: Any, target: Any) -> None:
        rename = self._jvm.org.apache.hadoop.fs.Options.Rename
        # The only way to make a Java array through py4j.
        options = self._jvm.java.lang.reflect.Array.newInstance(rename.OVERWRITE.getClass(), 1)
        options[0] = rename.OVERWRITE
        context = self._jvm.org.apache.hadoop.fs.FileContext
        context.getFileContext(self._root.toUri(), self._conf).rename(path, target, options)

    def _path(self, name: str) -> Any:
        if not name:
            return self._root
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name)

    def _do(self, verb: str, name: str, action: Any) -> Any:
        path = self._path(name)
        try:
            return action(path)
        except Exception as error:  # py4j wraps any Java exception
            message = f"{path.toString()} cannot be {verb}: {_reason(error)}"
            raise FileSystemFailure(message) from error


def _reason(error: Exception) -> str:
    """Java's message without its stack trace."""
    thrown = getattr(error, "java_exception", None)
    if thrown is None:
        return explain_text(str(error))
    return str(thrown.getMessage() or thrown.getClass().getSimpleName()).splitlines()[0]
