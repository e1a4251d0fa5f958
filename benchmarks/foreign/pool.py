"""A process with limits for each file, so that a crash or hang affects that file only."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path

import psutil
from threadpoolctl import threadpool_limits

from foreign.answers import Answer, Finding, worst
from foreign.examine import OURS, RUNTIME, examine
from foreign.slopes import DIFFERENCES

# Wall-clock limit of a stage, as a multiple of its CPU limit, for busy machines.
_PATIENCE = 10
_WAKE_SECONDS = 1.0


@dataclass(frozen=True)
class Limits:
    """CPU seconds of each stage, and megabytes of memory in addition to the parent's."""

    seconds: int
    megabytes: int


@dataclass(frozen=True)
class Examined:
    """The findings of a file; ``fatal`` says how ONNX Runtime ended the process."""

    path: Path
    findings: tuple[Finding, ...]
    seconds: float
    fatal: str = ""

    @property
    def answer(self) -> Answer:
        """The worst answer among the file's findings."""
        return worst(list(self.findings))


class _Sender:
    """The report of a worker process, which sends findings and renews the CPU limit."""

    def __init__(self, connection: Connection, limits: Limits) -> None:
        self._connection, self._limits = connection, limits

    def stage(self, name: str) -> None:
        spent = sum(os.times()[:2])
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (int(spent) + self._limits.seconds, hard))
        self._connection.send(name)

    def add(self, finding: Finding) -> None:
        self._connection.send(finding)


def _work(path: Path, fatal: str, limits: Limits, connection: Connection) -> None:
    """Examine one file in a process without output; sends None at the end."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
        os.dup2(nowhere.fileno(), sys.stderr.fileno())
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = psutil.Process().memory_info().vms + limits.megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    examine(path, _Sender(connection, limits), fatal)
    connection.send(None)


@dataclass
class _Worker:
    """A running process and its reported findings."""

    path: Path
    process: ForkProcess
    patience_seconds: float
    begun: float = field(default_factory=time.monotonic)
    stage: str = ""
    stage_begun: float = field(default_factory=time.monotonic)
    findings: list[Finding] = field(default_factory=list)
    ended: bool = False

    def read(self, connection: Connection) -> bool:
        """Receive pending messages; returns whether the pipe is closed."""
        with contextlib.suppress(EOFError, ConnectionResetError):
            while connection.poll():
                message = connection.recv()
                if isinstance(message, Finding):
                    self.findings.append(message)
                elif message is None:
                    self.ended = True
                else:
                    self.stage, self.stage_begun = message, time.monotonic()
            return False
        return True

    def stop_if_late(self) -> None:
        """End a sleeping process, which no limit of CPU time would end."""
        if time.monotonic() - self.stage_begun > self.patience_seconds:
            self.process.kill()

    def examined(self) -> Examined:
        self.process.join()
        fatal = ""
        if not self.ended:
            death = _of_death(self.stage, self.process.exitcode or 0)
            fatal = death.message if self.stage == RUNTIME else ""
            self.findings.append(death)
        seconds = time.monotonic() - self.begun
        return Examined(self.path, tuple(self.findings), seconds, fatal)


def _of_death(stage: str, exit_code: int) -> Finding:
    """The finding for a process that ended during a stage."""
    if -exit_code in (signal.SIGXCPU, signal.SIGKILL):
        answer = Answer.HANG if stage in OURS else Answer.UNJUDGED
        return Finding(stage, answer, "stopped at the limit of its time")
    how = f"signal {-exit_code}" if exit_code < 0 else f"exit code {exit_code}"
    answer = Answer.UNJUDGED if stage == DIFFERENCES else Answer.MEMORY
    return Finding(stage, answer, f"the process ended with {how}")


def examine_all(paths: Sequence[Path], limits: Limits, jobs: int) -> Iterator[Examined]:
    """Yield every file's result when it is ready; ``jobs`` files are examined at a time.

    A file that hangs or crashes ONNX Runtime is examined again without ONNX Runtime.
    """
    context = multiprocessing.get_context("fork")
    waiting = deque((path, "") for path in paths)
    workers: dict[Connection, _Worker] = {}
    with threadpool_limits(1):
        while waiting or workers:
            while waiting and len(workers) < jobs:
                task = waiting.popleft()
                here, there = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(*task, limits, there), daemon=True)
                process.start()
                there.close()
                workers[here] = _Worker(task[0], process, limits.seconds * _PATIENCE)
            for connection in wait(list(workers), _WAKE_SECONDS):
                assert isinstance(connection, Connection)
                if workers[connection].read(connection):
                    examined = workers.pop(connection).examined()
                    if examined.fatal:
                        waiting.append((examined.path, examined.fatal))
                    else:
                        yield examined
            for worker in workers.values():
                worker.stop_if_late()
