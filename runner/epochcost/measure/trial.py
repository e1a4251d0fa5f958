"""Run a trial in a worker process, whose crash or lack of memory does not end this program."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from epochcost.measure.job import Job, Message, OutOfMemory, Progress, TrialFailed, TrialRefused
from epochcost.measure.memory import oom_kill_count, tells_out_of_memory, was_oom_killed
from epochcost.measure.pinning import pin_children
from epochcost.measure.start import last_lines, module_command
from epochcost.results.records import Measurement, Pinning

OnProgress = Callable[[Progress], None]
Lines = queue.SimpleQueue[str | None]

# A worker reports at each step, but at most four times a second. It counts as hanging if it is
# silent for this time plus ten time budgets: loading and optimising a large graph takes minutes.
_SILENCE_SECONDS = 300.0
_SILENCE_BUDGETS = 10
_READING_SECONDS = 1.0
# After its last message, a worker gets this time to release the GPU.
_ENDING_SECONDS = 60
_LAST_LINES = 8
# The text if the kernel counted a kill for lack of memory, or did not; None: unknown.
_KILLERS = {
    True: "by the system because memory ran out",
    False: "by another program: the system counted no kill for memory",
    None: "by another program, or by the system because memory ran out",
}
_WORKER = "epochcost.measure.worker"
_JOB, _MEASUREMENT, _LOG = "job.json", "measurement.json", "worker.log"


def run_trial(job: Job, folder: Path, on_progress: OnProgress) -> Measurement:
    """Measure ``job`` in a new worker process; see ``Worker.measure``."""
    with start_worker(folder, job.python, job.pinning) as worker:
        return worker.measure(job, on_progress)


@dataclass(frozen=True)
class Worker:
    """A worker process; ``kills_before`` is the ``oom_kill_count`` before the worker's start."""

    process: subprocess.Popen[str]
    folder: Path
    kills_before: int | None

    def measure(self, job: Job, on_progress: OnProgress) -> Measurement:
        """Give the worker its job, report its progress until it ends, and read the measurement.

        Raises TrialFailed if the worker ends without a measurement: TrialRefused if the input is
        wrong, OutOfMemory if memory ran out.
        """
        (self.folder / _JOB).write_bytes(job.model_dump_json().encode())
        _announce_job(self.process)
        silence_seconds = _SILENCE_SECONDS + _SILENCE_BUDGETS * job.sampling.budget_seconds
        failure = _forward_progress(self.process, silence_seconds, on_progress)
        status = _wait_or_kill(self.process)
        if status == 0 and failure is None:
            with contextlib.suppress(OSError, ValidationError):
                return Measurement.model_validate_json((self.folder / _MEASUREMENT).read_bytes())
        raise self._error(status, failure)

    def _error(self, status: int, failure: str | None) -> TrialFailed:
        oom_killed = was_oom_killed(self.kills_before, oom_kill_count())
        reason = failure or _render_ending(status, oom_killed, self.folder / _LOG)
        message = f"worker: {reason}"
        # A worker that this process killed for its silence did not run out of memory.
        hung = failure is not None and status == -signal.SIGKILL
        if not hung and tells_out_of_memory(message, status, oom_killed):
            return OutOfMemory(message)
        refused = status == TrialRefused.exit_code and failure is not None
        return TrialRefused(message) if refused else TrialFailed(message)


@contextlib.contextmanager
def start_worker(
    folder: Path, python: Path | None = None, pinning: Pinning | None = None
) -> Iterator[Worker]:
    """Start a worker under ``python`` (None: this interpreter), on the CPUs of ``pinning``.

    The worker ends when the context or this process ends, even if this process crashes. Raises
    CapabilityError if the worker cannot be pinned.
    """
    (folder / _MEASUREMENT).unlink(missing_ok=True)
    kills = oom_kill_count()
    command = module_command(python, _WORKER, str(folder / _JOB), str(folder / _MEASUREMENT))
    # In a new session, so that Ctrl-C only reaches this process, which then ends the worker
    # quietly.
    with (folder / _LOG).open("wb") as errors, _spawn(command, errors, pinning) as process:
        try:
            yield Worker(process, folder, kills)
        finally:
            process.kill()


def _announce_job(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    # ``_forward_progress`` reports a worker that has already ended.
    with contextlib.suppress(BrokenPipeError):
        # Not through the text stream, which would repeat a failed write when it closes.
        os.write(process.stdin.fileno(), b"\n")


def _spawn(command: list[str], errors: IO[bytes], pinning: Pinning | None) -> subprocess.Popen[str]:
    with pin_children(pinning):
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
        )


def _forward_progress(
    process: subprocess.Popen[str], silence_seconds: float, on_progress: OnProgress
) -> str | None:
    """Pass the worker's progress on until its output ends; returns the failure message, or None.

    A worker that prints nothing for ``silence_seconds`` is killed.
    """
    assert process.stdout is not None
    lines: Lines = queue.SimpleQueue()
    # In a thread, because pipes have no portable timeout.
    threading.Thread(target=_enqueue_lines, args=(process.stdout, lines), daemon=True).start()
    failure = None
    while True:
        try:
            line = _next_line(lines, silence_seconds)
        except queue.Empty:
            process.kill()
            return f"no output for {silence_seconds:.0f} s: killed as hanging"
        if line is None:
            return failure
        message = _parse_message(line)
        if message.progress is not None:
            on_progress(message.progress)
        failure = message.failure or failure


def _next_line(lines: Lines, silence_seconds: float) -> str | None:
    """The worker's next line, None at the end; raises queue.Empty after ``silence_seconds``."""
    try:
        return lines.get(timeout=silence_seconds)
    except queue.Empty:
        # The worker may have written lines while this process was suspended.
        return lines.get(timeout=_READING_SECONDS)


def _wait_or_kill(process: subprocess.Popen[str]) -> int:
    try:
        return process.wait(timeout=_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _enqueue_lines(output: IO[str], lines: Lines) -> None:
    with contextlib.suppress(ValueError):  # this process killed the worker and closed the pipe
        for line in output:
            lines.put(line)
    lines.put(None)


def _parse_message(line: str) -> Message:
    try:
        return Message.model_validate_json(line)
    except ValidationError:  # a library wrote the line
        return Message()


def _render_ending(status: int, oom_killed: bool | None, log: Path) -> str:
    """How a worker ended, and the last lines of its log."""
    if status == 0:
        ending = "ended without a measurement"
    elif status > 0:
        ending = f"ended with exit status {status}"
    elif status == -signal.SIGKILL:
        ending = f"killed by SIGKILL, {_KILLERS[oom_killed]}"
    else:
        ending = f"killed by {_signal_name(-status)}"
    last = last_lines(log.read_text(encoding="utf-8", errors="replace"), _LAST_LINES)
    return f"{ending}\n  its last lines:{last}" if last else f"{ending}; it wrote no lines"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
