"""Files through Hadoop, as Spark sees them: a local disk, HDFS, or any store that it knows.

Nothing here looks at the driver's own disk, which workers may not see.
"""

from typing import TYPE_CHECKING, Any

from kohort.pipeline.errors import PipelineError
from kohort.pipeline.ingest.explaining import explain_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class CannotKeep(PipelineError):
    """The file system refuses; says where and why."""


class Files:
    """One directory tree. Names are relative to its root, with slashes."""

    def __init__(self, spark: "SparkSession", root: str) -> None:
        # Spark offers no other way to Hadoop's files than its JVM.
        context: Any = spark.sparkContext
        self._jvm = context._jvm  # noqa: SLF001
        self._conf = context._jsc.hadoopConfiguration()  # noqa: SLF001
        try:
            given = self._jvm.org.apache.hadoop.fs.Path(root)
            self._system = given.getFileSystem(self._conf)
            self._root = self._system.makeQualified(given)
        except Exception as error:  # whatever Java has to say
            raise CannotKeep(f"{root!r} cannot be used: {_reason(error)}") from error

    @property
    def root(self) -> str:
        return str(self._root.toString())

    def address(self, name: str) -> str:
        return str(self._path(name).toString())

    def exists(self, name: str = "") -> bool:
        return bool(self._do("looked at", name, self._system.exists))

    def names(self, name: str = "") -> list[str]:
        """What is in a directory, in no order; nothing, if there is none."""
        if not self.exists(name):
            return []
        found = self._do("listed", name, self._system.listStatus)
        return [str(each.getPath().getName()) for each in found]

    def make_directory(self, name: str = "") -> None:
        if not self._do("made", name, self._system.mkdirs):
            raise CannotKeep(f"{self.address(name)} cannot be made")

    def delete(self, name: str) -> None:
        """With everything in it; not to be there is as good."""
        if self.exists(name):
            self._do("deleted", name, lambda path: self._system.delete(path, True))  # noqa: FBT003

    def move(self, name: str, to: str) -> None:
        """Whole or not at all, where the file system can; `to` must not be there yet."""
        self.make_directory(to.rpartition("/")[0])
        # Hadoop would move into a directory that is there, and say that all is well.
        if self.exists(to):
            raise CannotKeep(f"{self.address(to)} is in the way")
        target = self._path(to)
        if not self._do("moved", name, lambda path: self._system.rename(path, target)):
            raise CannotKeep(f"{self.address(name)} cannot be moved to {target.toString()}")

    def read(self, name: str) -> str:
        return str(self._do("read", name, self._read))

    def write(self, name: str, text: str) -> None:
        """All of it, or what was there before."""
        beside = f"{name}.new"
        self._do("written", beside, lambda path: self._write(path, text))
        self._do("written", name, lambda path: self._replace(self._path(beside), path))

    def _read(self, path: Any) -> str:
        stream = self._system.open(path)
        try:
            return bytes(self._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
        finally:
            stream.close()

    def _write(self, path: Any, text: str) -> None:
        stream = self._system.create(path, True)  # noqa: FBT003  # whatever a crash left there
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def _replace(self, path: Any, target: Any) -> None:
        rename = self._jvm.org.apache.hadoop.fs.Options.Rename
        # Spark offers no other way to an array of Java's.
        options = self._jvm.java.lang.reflect.Array.newInstance(rename.OVERWRITE.getClass(), 1)
        options[0] = rename.OVERWRITE
        context = self._jvm.org.apache.hadoop.fs.FileContext
        context.getFileContext(self._root.toUri(), self._conf).rename(path, target, options)

    def _path(self, name: str) -> Any:
        if not name:
            return self._root
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name)

    def _do(self, deed: str, name: str, act: Any) -> Any:
        path = self._path(name)
        try:
            return act(path)
        except Exception as error:  # whatever Java has to say
            message = f"{path.toString()} cannot be {deed}: {_reason(error)}"
            raise CannotKeep(message) from error


def _reason(error: Exception) -> str:
    """Java's own message, without the trace that comes with it."""
    thrown = getattr(error, "java_exception", None)
    if thrown is None:
        return explain_text(str(error))
    return str(thrown.getMessage() or thrown.getClass().getSimpleName()).splitlines()[0]
