"""Compute lines in copies of this process, so that a crash of onnx ends only a copy."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from onnxstep.graphs.trial_run import can_copy, limit_cpu_seconds, status_of_copy

# The copy sends this instead of a call's line if the call raised an exception.
_RAISED = b"!"


def computed_in_copies(calls: Sequence[Callable[[], bytes]]) -> tuple[bytes | None, ...]:
    """Results of the calls, computed in copies of this process; None for a call that crashes.

    Each call returns one line of bytes. A copy makes call after call until one ends it; a new copy
    continues. If a call raises an exception, it is repeated here, so that the caller gets the
    exception.
    """
    lines: list[bytes | None] = []
    while len(lines) < len(calls):
        remaining = calls[len(lines) :]
        if not can_copy():
            return (*lines, *(call() for call in remaining))
        computed = _lines_of_copy(remaining)
        lines += (
            call() if line == _RAISED else line
            for call, line in zip(remaining, computed, strict=False)
        )
        lines += [None] * (len(computed) < len(remaining))
    return tuple(lines)


def _lines_of_copy(calls: Sequence[Callable[[], bytes]]) -> list[bytes]:
    """Results of the first calls in a copy of this process, up to a call that ends the copy."""
    reading, writing = os.pipe()

    def write_lines() -> None:
        with os.fdopen(writing, "wb") as pipe:
            for call in calls:
                limit_cpu_seconds()
                pipe.write(_line(call) + b"\n")
                pipe.flush()

    def read_lines() -> list[bytes]:
        os.close(writing)
        return pipe.read().split(b"\n")[:-1]

    with os.fdopen(reading, "rb") as pipe:
        computed: list[bytes] = []
        status_of_copy(write_lines, lambda: computed.extend(read_lines()))
    return computed


def _line(call: Callable[[], bytes]) -> bytes:
    try:
        return call()
    except MemoryError:
        raise
    except Exception:  # the caller's own call will raise the exception
        return _RAISED
