"""The node over real sockets: start, memory, heartbeats, durable commits, produce, fetch, recovery.

The load comes from a separate process with prepared frames; node and generator have a core each.
The peer is the target: a ratio of at most 1 meets it. A server that does nothing is measured in the
same run: its cost is that of Python and the system, the rest is the node's.
"""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import kohort
from bench.kit.client import Client
from bench.kit.harness import Effort, Result, calls_per_round, cpu_seconds, tell
from bench.kit.in_memory_node import Unplugged
from kohort.types import Generation, GroupId, MemberId, Millis, Offset, Partition, Topic
from kohort.wire.api.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kohort.wire.api.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from kohort.wire.api.k03_metadata import MetadataRequest, MetadataRequestTopic
from kohort.wire.api.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kohort.wire.api.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kohort.wire.api.k12_heartbeat import HeartbeatRequest
from kohort.wire.api.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kohort.wire.api.k16_list_groups import ListGroupsRequest
from kohort.wire.api.k18_api_versions import ApiVersionsRequest
from kohort.wire.batch import NewBatch, NewRecord, encode
from kohort.wire.envelope import encode_request

CONNECTIONS = 50
FRAMES_IN_TURN = 32
SECONDS = 4.0
TOPIC = Topic("orders")
NODE_CORE, LOAD_CORE = ("0", "1") if (os.cpu_count() or 1) > 1 else ("-", "-")
COMMITS_TO_RECOVER = 1_000_000
MEMORY = "/dev/shm"  # noqa: S108  # a file system, in which a directory is made safely


@dataclass(frozen=True, slots=True)
class Served:
    """A running node."""

    port: int
    pid: int
    ready_after_s: float

    @property
    def cpu_s(self) -> float:
        """CPU time of all threads of the node."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def resident_mb(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


@dataclass(frozen=True, slots=True)
class Bytecode:
    """Where Python finds compiled bytecode, and whether it adds to it."""

    directory: str
    is_kept: bool


@contextmanager
def serve(data: str, *settings: str, bytecode: Bytecode | None = None) -> Iterator[Served]:
    environment = dict(os.environ)
    if bytecode is not None:
        environment["PYTHONPYCACHEPREFIX"] = bytecode.directory
        environment["PYTHONDONTWRITEBYTECODE"] = "" if bytecode.is_kept else "1"
    command = [sys.executable, "-m", "kohort", "serve", "--listen", "127.0.0.1:0", "--data", data]
    for setting in ("group.initial.rebalance.delay.ms=0", "num.partitions=10", *settings):
        command += ["--set", setting]
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    with ended(process):
        port = announced_port(process)
        with Client(port) as client:
            client.ask(ApiVersionsRequest(), 3)
        ready = time.perf_counter() - began
        hold_to_core(process)
        yield Served(port, process.pid, ready)


@contextmanager
def serve_bare() -> Iterator[Served]:
    """A server that only answers, with responses as large as a heartbeat's."""
    command = [sys.executable, "-m", "bench.kit.bare_server"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    with ended(process):
        hold_to_core(process)
        yield Served(announced_port(process), process.pid, 0)


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def announced_port(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline().rpartition(":")[2])


def hold_to_core(process: subprocess.Popen[str]) -> None:
    if NODE_CORE != "-":
        os.sched_setaffinity(process.pid, {int(NODE_CORE)})


def join_alone(port: int, group: str) -> MemberId:
    with Client(port) as client:
        return join_through(client, group)


def join_through(client: Client | Unplugged, group: str) -> MemberId:
    """Form a stable group of one; return its member id. The generation is 1."""
    join = JoinGroupRequest(
        group_id=GroupId(group),
        session_timeout_ms=Millis(600_000),
        rebalance_timeout_ms=Millis(60_000),
        protocol_type="bench",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=b"x"),),
    )
    joined = client.ask(join, 3)
    assert joined.error_code == 0, joined
    sync = SyncGroupRequest(
        group_id=GroupId(group),
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=(SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"all"),),
    )
    assert client.ask(sync, 3).error_code == 0
    return MemberId(joined.member_id)


def drive(served: Served, lanes: list[list[bytes]], seconds: float) -> float:
    """Send each list of frames in turn on its own connection.

    Returns responses per second of node CPU, which other processes on the machine disturb less than
    the wall-clock time, which is printed.
    """
    plan = ""
    with Client(served.port) as client:
        for frames in lanes:
            size = len(client.ask_raw(frames[0])) + 4
            plan += f"{size} {' '.join(frame.hex() for frame in frames)}\n"
    command = [sys.executable, "-m", "bench.kit.load", str(served.port), "--seconds", str(seconds)]
    command += [] if LOAD_CORE == "-" else ["--core", LOAD_CORE]
    cpu_before = served.cpu_s
    done = subprocess.run(command, input=plan, capture_output=True, text=True, check=True)
    report: dict[str, float] = json.loads(done.stdout)
    cpu_s = served.cpu_s - cpu_before
    ours, theirs = cpu_s / report["seconds"], report["generator_cpu_share"]
    sys.stderr.write(
        f"  {report['per_second']:,.0f} answers/s by the wall, "
        f"CPU: node {ours:.0%}, generator {theirs:.0%}\n"
    )
    return report["answers"] / cpu_s


def beat_frames(group: str, member: MemberId) -> list[bytes]:
    beat = HeartbeatRequest(group_id=GroupId(group), generation_id=Generation(1), member_id=member)
    return [encode_request(beat, 4, number, "bench") for number in range(FRAMES_IN_TURN)]


def heartbeats(served: Served, seconds: float) -> float:
    groups = [f"beat-{number}" for number in range(CONNECTIONS)]
    lanes = [beat_frames(group, join_alone(served.port, group)) for group in groups]
    return drive(served, lanes, seconds)


def bare_answers(seconds: float) -> float:
    """The same frames, sent to the server that does nothing."""
    frames = beat_frames("beat-10", MemberId("bench-00000000-0000-0000-0000-000000000000"))
    with serve_bare() as served:
        return drive(served, [frames] * CONNECTIONS, seconds)


def commit_frame(group: str, member: MemberId, correlation_id: int, offset: int = 1000) -> bytes:
    partitions = tuple(
        OffsetCommitRequestPartition(
            partition_index=Partition(each), committed_offset=Offset(offset), committed_metadata=""
        )
        for each in range(10)
    )
    commit = OffsetCommitRequest(
        group_id=GroupId(group),
        generation_id_or_member_epoch=Generation(1),
        member_id=member,
        topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=partitions),),
    )
    return encode_request(commit, 8, correlation_id, "bench")


def commits(served: Served, seconds: float) -> float:
    """Every commit of a connection has other offsets than the one before."""
    lanes = []
    for number in range(CONNECTIONS):
        group = f"commit-{number}"
        member = join_alone(served.port, group)
        lanes.append(commit_frames(group, member))
    return drive(served, lanes, seconds)


def commit_frames(group: str, member: MemberId) -> list[bytes]:
    return [commit_frame(group, member, each, each) for each in range(FRAMES_IN_TURN)]


def produce_frame(partition: int) -> bytes:
    records = tuple(
        NewRecord(key=None, value=os.urandom(1000), timestamp=Millis(1)) for _ in range(64)
    )
    data = PartitionProduceData(
        index=Partition(partition), records=encode(NewBatch(records=records))
    )
    request = ProduceRequest(
        acks=1,
        timeout_ms=Millis(10_000),
        topic_data=(TopicProduceData(name=TOPIC, partition_data=(data,)),),
    )
    return encode_request(request, 9, partition, "bench")


def fetch_frame(partition: int) -> bytes:
    wanted = FetchPartition(
        partition=Partition(partition), fetch_offset=Offset(0), partition_max_bytes=1 << 20
    )
    request = FetchRequest(
        max_wait_ms=Millis(100),
        min_bytes=1,
        max_bytes=1 << 20,
        topics=(FetchTopic(topic=TOPIC, partitions=(wanted,)),),
    )
    return encode_request(request, 11, partition, "bench")


def measure(effort: Effort) -> Iterator[Result]:
    seconds = effort.pick(SECONDS, SECONDS / 10)
    yield from starts(effort.pick(5, 1))
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as data, serve(data) as served:
        yield against("idle memory", served.resident_mb, 60, "MB")
        make_topic(served.port)
        bare = bare_answers(seconds)
        beats, kept = heartbeats(served, seconds), commits(served, seconds)
        yield cost("heartbeat, 50 connections", beats, 70_000)
        yield cost("durable commit of 10, 50 connections", kept, 15_000)
        yield beyond_bare("heartbeat", 1e6 / beats, bare)
        yield beyond_bare("durable commit of 10", 1e6 / kept, bare)
        for metric, microseconds in unplugged(effort.rounds):
            yield beyond_bare(metric, microseconds, bare)
        per_second = drive(served, [[produce_frame(each)] for each in range(10)], seconds)
        yield volume("produce, 64 KB batches of 1 KB", per_second * 64 * 1000)
        with Client(served.port) as client:
            size = len(client.ask_raw(fetch_frame(0)))
        per_second = drive(served, [[fetch_frame(each)] for each in range(10)], seconds)
        yield volume("fetch, 1 MB at a time", per_second * size)
    yield recovery(effort.pick(COMMITS_TO_RECOVER, COMMITS_TO_RECOVER // 100))


def starts(times: int) -> Iterator[Result]:
    """With compiled bytecode, and without it as after an update."""
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as bytecode:
        ready_after_ms(bytecode, 1)
        yield against("ready after process start", ready_after_ms(bytecode, times), 400, "ms")
        ours = Path(kohort.__file__).parent
        shutil.rmtree(f"{bytecode}{ours}")
        again = ready_after_ms(bytecode, times, is_kept=False)
        yield against("ready after process start, if not compiled yet", again, 400, "ms")


def ready_after_ms(bytecode: str, times: int, *, is_kept: bool = True) -> float:
    taken = []
    for _ in range(times):
        with (
            tempfile.TemporaryDirectory(prefix="kohort-bench-") as data,
            serve(data, bytecode=Bytecode(bytecode, is_kept)) as served,
        ):
            taken.append(served.ready_after_s * 1000)
    return statistics.median(taken)


def unplugged(rounds: int) -> Iterator[tuple[str, float]]:
    """The cost of the node's own Python: no socket, no loop and, if possible, no disk."""
    memory = MEMORY if Path(MEMORY).is_dir() else None
    with tempfile.TemporaryDirectory(prefix="kohort-bench-", dir=memory) as data:
        node = Unplugged(Path(data))
        node.ask(MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), 9)
        member = join_through(node, "group")
        for metric, frames in (
            ("heartbeat without sockets", beat_frames("group", member)),
            ("commit of 10 without sockets and disk", commit_frames("group", member)),
        ):
            ask = node.repeat(frames)
            for _ in frames:
                ask()
            count = calls_per_round(ask)
            spent = [cpu_seconds(ask, count) / count * 1e6 for _ in range(rounds)]
            yield metric, statistics.median(spent)
        node.close()


def make_topic(port: int) -> None:
    with Client(port) as client:
        client.ask(MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), 9)


def recovery(commits: int) -> Result:
    """Time until groups are served again, with this many committed offsets in the log."""
    with tempfile.TemporaryDirectory(prefix="kohort-bench-") as data:
        with serve(data, "kohort.durability=os") as served:
            make_topic(served.port)
            member = join_alone(served.port, "busy")
            with Client(served.port) as client:
                for number in range(commits // 10):
                    client.ask_raw(commit_frame("busy", member, number, number))
        began = time.perf_counter()
        with serve(data, "kohort.durability=os") as served, Client(served.port) as client:
            while client.ask(ListGroupsRequest(), 4).error_code != 0:
                pass
            took = time.perf_counter() - began
    return against(f"recovery of {commits:_} commits", took, 10, "s")


def against(metric: str, measured: float, target: float, unit: str) -> Result:
    return Result(metric=metric, kohort=measured, peer=target, target=1, unit=unit)


def cost(metric: str, per_second: float, target: int) -> Result:
    """A rate as the cost of one, so that less is better everywhere."""
    return against(f"{metric} ({per_second:,.0f}/s)", 1e6 / per_second, 1e6 / target, "µs")


def beyond_bare(metric: str, microseconds: float, bare: float) -> Result:
    """Compared with the server that does nothing, to tell a slow node from a slow machine."""
    title = f"{metric}, vs a bare server ({bare:,.0f}/s)"
    return Result(metric=title, kohort=microseconds, peer=1e6 / bare, target=None)


def volume(metric: str, bytes_per_second: float) -> Result:
    megabytes = bytes_per_second / 1e6
    return against(f"{metric} ({megabytes:,.0f} MB/s)", 1000 / megabytes, 1000 / 200, "µs/KB")


if __name__ == "__main__":
    tell(__doc__ or "", "target", measure)
