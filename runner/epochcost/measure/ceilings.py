"""What a machine does at most: ``python -m epochcost.measure.ceilings BYTES SIDE THREADS…``.

A process of its own, whose threads and arenas nobody else has touched. It multiplies two matrices
and copies memory by ONNX Runtime's CPU provider, the same kernels that trials run on, and prints
one JSON list of ``Ceiling``. ``ceilings_here`` starts it where no ceilings of this host are stored,
and stores them beside its results. Whether what somebody hands in can be true is left to
``results.submissions``.
"""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError

from epochcost.errors import CapabilityError
from epochcost.measure.environment import detect_environment
from epochcost.measure.memory import memory_limit_bytes
from epochcost.measure.pace import bound_run
from epochcost.measure.start import last_words, run_module
from epochcost.plan.trial import SessionSettings
from epochcost.results.ceilings import (
    CEILINGS_VERSION,
    FOLDER,
    Anchor,
    Ceiling,
    Ceilings,
    find_ceilings,
    write_ceilings,
)
from epochcost.results.environment import Environment
from epochcost.results.files import exclusive_lock, require_writable
from epochcost.results.plausibility import contradictions
from epochcost.specs.hardware import Hardware
from epochcost.specs.study import Provider

# What is copied and its copy take a quarter of a small machine's memory.
_SHARE_OF_MEMORY = 8
# Larger sides multiply no faster on the CPUs tried; 17 GFLOP take 0.1 to 0.3 s of one core.
MATRIX_SIDE = 2048
# Sixteen times a common last-level cache: what is read again has long left it.
MOST_COPIED_BYTES = 512 * 2**20
TIMES = 7
_MODULE = "epochcost.measure.ceilings"
_LONGEST_SECONDS = 600
_Ceilings = TypeAdapter(tuple[Ceiling, ...])


def ceilings_here(
    hardware: Hardware,
    folder: Path,
    provider: Provider,
    anchors: Callable[[], tuple[Anchor, ...]],
    *,
    again: bool,
) -> tuple[Ceilings, bool]:
    """What this host does at most, as ``hardware``, and whether it was measured just now.

    It is stored below ``folder`` as soon as it is whole, and measured where this host has none
    under this runtime and in today's form, or ``again``; ``anchors`` measures those, under the
    lock on the folder. Raises CapabilityError where it cannot be measured or stored,
    or another run measures into the same folder.
    """
    environment = detect_environment()
    stored = None if again else find_ceilings(folder, hardware.id, provider, environment)
    if stored is not None and stored.ceilings_version == CEILINGS_VERSION:
        return stored, False
    require_writable(folder / hardware.id / FOLDER)
    with exclusive_lock(folder / hardware.id):
        measured = _measure_here(hardware, provider, environment, anchors)
        write_ceilings(folder, measured)
    return measured, True


def _measure_here(
    hardware: Hardware,
    provider: Provider,
    environment: Environment,
    anchors: Callable[[], tuple[Anchor, ...]],
) -> Ceilings:
    begun = dt.datetime.now(dt.UTC)
    copied = min(MOST_COPIED_BYTES, memory_limit_bytes() // _SHARE_OF_MEMORY)
    threads = _thread_counts(environment)
    return Ceilings(
        ceilings_version=CEILINGS_VERSION,
        hardware=hardware.id,
        provider=provider,
        measured_at=begun,
        ceilings=measure_apart(copied, threads) if provider == "cpu" else (),
        anchors=anchors(),
        environment=environment,
        contradictions=contradictions(hardware, environment),
    )


def _thread_counts(environment: Environment) -> tuple[int, ...]:
    """One, one a core, and one a CPU: two threads of a core share its units."""
    cores = environment.physical_cores or environment.logical_cpus
    return tuple(sorted({1, min(cores, environment.logical_cpus), environment.logical_cpus}))


def measure_apart(
    copied_bytes: int, threads: Sequence[int], side: int = MATRIX_SIDE
) -> tuple[Ceiling, ...]:
    """Measure the ceilings in a process of its own; raises CapabilityError with its last words."""
    arguments = map(str, (copied_bytes, side, *threads))
    try:
        done = run_module(None, _MODULE, *arguments, timeout_seconds=_LONGEST_SECONDS)
        return _Ceilings.validate_json(done.stdout.strip())
    except subprocess.TimeoutExpired:
        said = f"none within {_LONGEST_SECONDS} s"
    except ValidationError:
        said = f"status {done.returncode}: {last_words(done):.300}"
    raise CapabilityError(f"expected the ceilings of this machine, got {said}")


def measure_ceiling(threads: int, side: int, copied_bytes: int) -> Ceiling:
    """Time the product and the copy, each after one pass that does not count."""
    return Ceiling(
        threads=threads,
        matrix_side=side,
        product_seconds=_product_seconds(threads, side),
        copied_bytes=copied_bytes,
        copy_seconds=_copy_seconds(threads, copied_bytes),
    )


def _product_seconds(threads: int, side: int) -> tuple[float, ...]:
    random = np.random.default_rng(0)
    factors = [random.random((side, side), np.float32) for _ in range(2)]
    product = np.zeros((side, side), np.float32)
    return _times(bound_run("MatMul", factors, product, SessionSettings(threads=threads)))


def _copy_seconds(threads: int, copied_bytes: int) -> tuple[float, ...]:
    # Negation is a copy that the runtime spreads over its threads.
    source, copy = np.ones(copied_bytes // 4, np.float32), np.zeros(copied_bytes // 4, np.float32)
    return _times(bound_run("Neg", [source], copy, SessionSettings(threads=threads)))


def _times(work: Callable[[], object]) -> tuple[float, ...]:
    work()
    found = []
    for _ in range(TIMES):
        begun = time.perf_counter()
        work()
        found.append(round(time.perf_counter() - begun, 9))
    return tuple(found)


if __name__ == "__main__":
    _copied, _side, *_threads = map(int, sys.argv[1:])
    _found = tuple(measure_ceiling(count, _side, _copied) for count in _threads)
    sys.stdout.write(_Ceilings.dump_json(_found).decode() + "\n")
