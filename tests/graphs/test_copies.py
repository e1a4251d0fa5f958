"""Calls run in a copy of the process, so that a crash costs only the call's own line."""

from __future__ import annotations

import os
import signal

import pytest

from epochcost.graphs.profiling import computed_in_copies
from onnxstep.graphs import trial_run
from onnxstep.graphs.trial_run import require_end


def _spin() -> None:
    while True:
        pass


def test_lines_are_computed_in_one_copy() -> None:
    """All calls run in the same copy of the process and change nothing in this process."""
    process: list[bytes] = []

    def number() -> bytes:
        process.append(b"")
        require_end(_spin, "the check")
        return f"{os.getpid()} {len(process)}".encode()

    first, second = computed_in_copies([number, number])
    assert first is not None
    assert second == first.replace(b" 1", b" 2")
    assert not first.startswith(f"{os.getpid()} ".encode())
    assert process == []


def test_a_call_without_end_takes_no_other_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that times out or crashes has no result, and the other calls have theirs."""
    monkeypatch.setattr(trial_run, "CPU_SECONDS", 1)

    def end() -> bytes:
        os.kill(os.getpid(), signal.SIGSEGV)
        return b""

    def spin() -> bytes:
        _spin()
        return b""

    calls = [lambda: b"a", end, lambda: b"b", spin, lambda: b"c"]
    assert computed_in_copies(calls) == (b"a", None, b"b", None, b"c")


def test_an_exception_of_a_line_is_raised_here() -> None:
    """An exception of a call is raised in this process instead of counting as a crash."""

    def fail() -> bytes:
        raise ValueError("ours")

    with pytest.raises(ValueError, match="ours"):
        computed_in_copies([lambda: b"a", fail])
