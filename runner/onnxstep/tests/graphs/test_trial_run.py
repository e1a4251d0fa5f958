"""``require_end`` tries a call in a forked process, and refuses calls that crash or do not end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import onnx
import pytest

from graph_text import model_of_text
from onnxstep.errors import ModelError
from onnxstep.graphs import trial_run
from onnxstep.graphs.loading import load_model_bytes
from onnxstep.graphs.trial_run import require_end


def _spin() -> None:
    while True:
        pass


def test_a_call_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that exceeds the CPU time limit is refused; the error names the call and a remedy."""
    monkeypatch.setattr(trial_run, "CPU_SECONDS", 1)
    with pytest.raises(ModelError, match="the check does not end within 1 s; export"):
        require_end(_spin, "the check")


def test_a_call_that_ends_its_process_is_refused() -> None:
    """A segmentation fault ends only the forked process, and raises ModelError in this process."""
    with pytest.raises(ModelError, match="the check ends in SIGSEGV"):
        require_end(lambda: os.kill(os.getpid(), signal.SIGSEGV), "the check")


def test_a_crash_under_a_limit_of_memory_is_out_of_memory() -> None:
    """A crash of the forked process raises MemoryError if its parent has a memory limit."""
    program = (
        "import os, resource, signal\n"
        "from onnxstep.graphs.trial_run import require_end\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (2**33, 2**33))\n"
        "require_end(lambda: os.kill(os.getpid(), signal.SIGSEGV), 'the check')\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert process.stderr.splitlines()[-1] == (
        "MemoryError: the check needs more memory than this process may have"
    )


def test_a_call_that_takes_all_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that takes more than ``MEMORY_BYTES`` in the forked process is refused."""
    monkeypatch.setattr(trial_run, "MEMORY_BYTES", 2**30)
    with pytest.raises(ModelError, match="the check needs more than 1 GiB"):
        require_end(lambda: bytearray(3 * 2**30), "the check")


def test_an_exception_is_an_end() -> None:
    """If the call raises an exception in the forked process, ``require_end`` returns normally.

    The call does not change variables of the process that calls ``require_end``.
    """
    changed: list[int] = []

    def fail() -> None:
        changed.append(1)
        raise ValueError

    require_end(fail, "the check")
    assert changed == []


def test_a_signal_ends_the_wait() -> None:
    """SIGTERM reaches this process while it waits, and also ends the forked process."""

    class EndedError(Exception):
        pass

    def end(*_: object) -> None:
        raise EndedError

    before = signal.signal(signal.SIGTERM, end)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    started = time.process_time()
    try:
        with pytest.raises(EndedError):
            require_end(_spin, "the check")
    finally:
        signal.signal(signal.SIGTERM, before)
    assert time.process_time() - started < trial_run.CPU_SECONDS


def test_a_graph_that_onnx_never_finishes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader refuses a file on which onnx's shape inference does not end."""
    monkeypatch.setattr(trial_run, "CPU_SECONDS", 1)
    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", lambda *_, **__: _spin())
    model = model_of_text("g (float[2] x) => (float[2] y) { y = Relu(x) }")
    with pytest.raises(ModelError, match="onnx's check of this graph does not end"):
        load_model_bytes(model.SerializeToString())
