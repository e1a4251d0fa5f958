"""Benchmark peak rates ("ceilings") of matrix products and memory copies in ONNX Runtime.

``python -m epochcost.measure.ceilings WORK`` turns a JSON CeilingWork into a JSON list of Ceiling.
"""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper
from pydantic import TypeAdapter, ValidationError

from epochcost.errors import CapabilityError
from epochcost.measure.environment import detect_environment
from epochcost.measure.gpus import shown_gpus
from epochcost.measure.memory import memory_limit_bytes
from epochcost.measure.placement import HALF_TYPES
from epochcost.measure.session import BFLOAT16, allocate, copy_into, open_session
from epochcost.measure.start import last_error_line, run_module
from epochcost.measure.stepping import Array
from epochcost.plan.trial import SessionSettings
from epochcost.results.ceilings import CEILINGS_VERSION, Ceiling, Ceilings, find_ceilings
from epochcost.results.environment import Environment
from epochcost.results.fields import Record
from epochcost.results.files import exclusive_lock, require_writable
from epochcost.results.plausibility import contradictions
from epochcost.results.store import write_sidecar
from epochcost.specs.hardware import Hardware
from epochcost.specs.study import Precision, Provider

# The source and its copy together take a quarter of a small machine's memory.
_SHARE_OF_MEMORY = 8
# On the CPUs that we tried, larger matrices are no faster. The 17 GFLOP take 0.1 to 0.3 s on a
# core.
MATRIX_SIDE = 2048
# Sixteen times the size of a common last-level cache, so that every read comes from memory.
MOST_COPIED_BYTES = 512 * 2**20
# A GPU of 1 PFLOP/s takes 1 ms for this product, and a GPU of 5 TB/s takes 1 ms for this copy: a
# hundred times as long as the start of a kernel.
_GPU_MATRIX_SIDE = 8192
_GPU_MOST_COPIED_BYTES = 2 * 2**30
_GPU_PRECISIONS: tuple[Precision, ...] = ("fp32", "tf32", "fp16", "bf16")
TIMES = 7
_MODULE = "epochcost.measure.ceilings"
_LONGEST_SECONDS = 600
_Ceilings = TypeAdapter(tuple[Ceiling, ...])


class CeilingWork(Record):
    """Settings of the benchmark, which runs for each number of ``threads`` and each precision."""

    provider: Provider = "cpu"
    device: int = 0
    threads: tuple[int, ...] = (1,)
    precisions: tuple[Precision, ...] = ("fp32",)
    matrix_side: int = MATRIX_SIDE
    copied_bytes: int


def ceilings_here(
    hardware: Hardware, folder: Path, provider: Provider, *, again: bool, device: int = 0
) -> tuple[Ceilings, bool]:
    """Peak rates of this host, and whether this call measured them.

    Unless ``again``, rates in ``folder`` in the current format are returned if they are of this
    host and runtime. ``device`` is CUDA's number of a GPU. Raises CapabilityError if measuring or
    storing fails, or if another run writes to the folder.
    """
    environment = detect_environment()
    stored = None if again else find_ceilings(folder, hardware.id, provider, environment, device)
    if stored is not None and stored.ceilings_version == CEILINGS_VERSION:
        return stored, False
    require_writable(folder / hardware.id / Ceilings.folder)
    with exclusive_lock(folder / hardware.id):
        begun = dt.datetime.now(dt.UTC)
        work = _work(provider, device, environment)
        measured = Ceilings(
            ceilings_version=CEILINGS_VERSION,
            hardware=hardware.id,
            provider=provider,
            device=device,
            measured_at=begun,
            ceilings=measure_apart(work),
            environment=environment,
            contradictions=contradictions(hardware, environment),
        )
        write_sidecar(folder, measured)
    return measured, True


def _work(provider: Provider, device: int, environment: Environment) -> CeilingWork:
    if provider == "cpu":
        copied = min(MOST_COPIED_BYTES, memory_limit_bytes() // _SHARE_OF_MEMORY)
        # Two threads of a core share arithmetic units, so more threads are not always faster.
        cpus = environment.logical_cpus
        threads = {1, min(environment.physical_cores or cpus, cpus), cpus}
        return CeilingWork(threads=tuple(sorted(threads)), copied_bytes=copied)
    sizes = [gpu.memory_bytes for gpu in shown_gpus()[device : device + 1] if gpu.memory_bytes]
    memory = min(sizes, default=_GPU_MOST_COPIED_BYTES)
    return CeilingWork(
        provider=provider,
        device=device,
        precisions=_GPU_PRECISIONS,
        matrix_side=_GPU_MATRIX_SIDE,
        copied_bytes=min(_GPU_MOST_COPIED_BYTES, memory // _SHARE_OF_MEMORY),
    )


def measure_apart(work: CeilingWork) -> tuple[Ceiling, ...]:
    """Measure in another process; raises CapabilityError if the process fails or is too slow."""
    try:
        work_json = work.model_dump_json()
        process = run_module(None, _MODULE, work_json, timeout_seconds=_LONGEST_SECONDS)
        return _Ceilings.validate_json(process.stdout.strip())
    except subprocess.TimeoutExpired:
        got = f"none within {_LONGEST_SECONDS} s"
    except ValidationError:
        got = f"status {process.returncode}: {last_error_line(process):.300}"
    raise CapabilityError(f"expected the ceilings of this machine, got {got}")


def measured_ceilings(work: CeilingWork) -> Iterator[Ceiling]:
    """Yield rates by precision and thread number; raises errors in fp32, and prints others."""
    for precision in work.precisions:
        for threads in work.threads:
            try:
                yield measure_ceiling(work, threads, precision)
            except Exception as error:  # ONNX Runtime's exceptions have no narrower base class
                if precision == "fp32":
                    raise
                sys.stderr.write(f"{precision}: {error}\n")


def measure_ceiling(work: CeilingWork, threads: int, precision: Precision = "fp32") -> Ceiling:
    """Time ``TIMES`` matrix products and memory copies, after an untimed run of each operation."""
    tf32 = precision == "tf32"
    settings = SessionSettings(threads=threads, device=work.device, tf32=tf32)
    run = partial(run_on_device, work.provider, precision)
    random, side = np.random.default_rng(0), (work.matrix_side,) * 2
    factors = [random.random(side, np.float32) for _ in range(2)]
    product = _times(run("MatMul", factors, settings))
    copied = np.ones(
        work.copied_bytes // helper.tensor_dtype_to_np_dtype(_element_type(precision)).itemsize,
        np.float32,
    )
    return Ceiling(
        threads=threads,
        precision=precision,
        matrix_side=work.matrix_side,
        product_seconds=product,
        copied_bytes=work.copied_bytes,
        # Negation instead of a copy: it moves as much memory, and the runtime uses all threads.
        copy_seconds=_times(run("Neg", [copied], settings)),
    )


def _element_type(precision: Precision) -> int:
    return HALF_TYPES.get(precision, TensorProto.FLOAT)


def _single_operator_model(
    operator: str, input_count: int, shape: Sequence[int], element_type: int
) -> bytes:
    """A serialised ONNX model with one node: inputs ``x0``, ``x1``, … and the output ``y``."""
    names = [f"x{index}" for index in range(input_count)]
    ends = [helper.make_tensor_value_info(name, element_type, shape) for name in (*names, "y")]
    node = helper.make_node(operator, names, ["y"])
    graph = helper.make_graph([node], operator, ends[:-1], ends[-1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def run_on_device(
    provider: Provider,
    precision: Precision,
    operator: str,
    values: Sequence[Array],
    settings: SessionSettings,
) -> Callable[[], None]:
    """Make a function that runs ``operator`` on ``values`` and waits for the output.

    All tensors have the same shape. They are bound beforehand, so that no allocation is timed.
    """
    shape, kind = values[0].shape, _element_type(precision)
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    model = _single_operator_model(operator, len(values), shape, kind)
    session = open_session(model, provider, settings)
    binding = session.io_binding()
    for index, value in enumerate(values):
        operand = allocate(shape, dtype, provider, settings.device)
        copy_into(operand, value if dtype == BFLOAT16 else value.astype(dtype), settings)
        binding.bind_ortvalue_input(f"x{index}", operand)
    binding.bind_ortvalue_output("y", allocate(shape, dtype, provider, settings.device))

    def run() -> None:
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()

    return run


def _times(work: Callable[[], object]) -> tuple[float, ...]:
    work()
    times = []
    for _ in range(TIMES):
        begun = time.perf_counter()
        work()
        times.append(round(time.perf_counter() - begun, 9))
    return tuple(times)


if __name__ == "__main__":
    _measured = tuple(measured_ceilings(CeilingWork.model_validate_json(sys.argv[1])))
    sys.stdout.write(_Ceilings.dump_json(_measured).decode() + "\n")
