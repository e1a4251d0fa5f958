"""The machine's pace while a trial is sampled: two fixed works, taken between its steps.

One is bound by arithmetic, a product of two matrices that stay in the caches; one by memory, a copy
of more than caches hold. Both run as the trial does, on ONNX Runtime's CPU provider with as many
threads, so that what takes the CPU, the clock or the memory from the steps takes it from them too.
What readings say of the steps is left to ``results.undisturbed``. A GPU's own clocks are read by
``watch``; nothing is read here for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

from epochcost.measure.kernel_files import read_text
from epochcost.measure.sampling import Clock
from epochcost.measure.session import open_session
from epochcost.measure.stepping import Array
from epochcost.plan.trial import SessionSettings
from epochcost.results.conditions import Pace

# Each product and each copy takes some tenths of a millisecond of a small machine, as operators of
# a step do; all together take about as long as a slice of a scheduler.
MATRIX_SIDE = 384
PRODUCTS = 6
# As many bytes are written: together beyond the last cache's share of a few cores.
COPIED_BYTES = 32 * 2**20
COPIES = 8
# Of the time that sampling takes.
MOST_SHARE = 0.04
# After a step of many seconds as many say enough of that moment.
_MOST_IN_A_ROW = 20


class _Reading(NamedTuple):
    """One line of the lists of ``Pace``."""

    after_samples: int
    product_seconds: float
    copy_seconds: float
    waited_seconds: float
    waited_within_seconds: float


class PaceReader:
    """Takes readings between samples, as often as ``MOST_SHARE`` of the time allows.

    What it counts between them, the time that threads of this process waited for a CPU, covers
    every moment, and so shows neighbours who come and go faster than readings are taken.
    ``bytes_held`` is what its operands keep in memory.
    """

    bytes_held = 2 * COPIED_BYTES + 3 * 4 * MATRIX_SIDE**2

    def __init__(self, settings: SessionSettings, clock: Clock) -> None:
        self._clock, self._threads = clock, settings.threads
        random = np.random.default_rng(0)
        *factors, product = (random.random((MATRIX_SIDE,) * 2, np.float32) for _ in range(3))
        self._product = bound_run("MatMul", factors, product, settings)
        # Two blocks of memory, whatever pages the system has for them, and each touched.
        source, target = (np.ones((COPIES, COPIED_BYTES // COPIES // 4), np.float32) for _ in "io")
        # Negation is a copy that the runtime spreads over its threads.
        self._copies = [
            bound_run("Neg", [one], other, settings)
            for one, other in zip(source, target, strict=True)
        ]
        self._readings: list[_Reading] = []
        self._waited = 0.0
        self.begin()
        self._read()
        self.begin()

    def begin(self) -> None:
        """Sampling begins now."""
        self._begun, self._spent, self._count = self._clock(), 0.0, 0
        self._readings.clear()
        self._waited = waited_seconds()

    def before_step(self) -> None:
        """Take what readings are due before the next sample."""
        for _ in range(_MOST_IN_A_ROW):
            if self._spent > MOST_SHARE * (self._clock() - self._begun):
                break
            self._read()
        self._count += 1

    def pace(self) -> Pace | None:
        """The readings since ``begin``."""
        if not self._readings:
            return None
        columns = map(tuple, zip(*self._readings, strict=True))
        return Pace(
            threads=self._threads,
            matrix_side=MATRIX_SIDE,
            products=PRODUCTS,
            copied_bytes=COPIED_BYTES,
            copies=COPIES,
            **dict(zip(_Reading._fields, columns, strict=True)),
        )

    def _read(self) -> None:
        waited, before = waited_seconds(), self._clock()
        # The step left other things in the caches.
        self._product()
        begun = self._clock()
        for _ in range(PRODUCTS):
            self._product()
        between = self._clock()
        for copy in self._copies:
            copy()
        ended = self._clock()
        self._spent += ended - before
        since, self._waited = self._waited, waited_seconds()
        works = between - begun, ended - between
        waits = waited - since, self._waited - waited
        times = (*(max(one, 1e-9) for one in works), *(max(one, 0.0) for one in waits))
        # Without the digits that no clock measures.
        self._readings.append(_Reading(self._count, *(round(one, 9) for one in times)))


def waited_seconds(tasks: Path = Path("/proc/self/task")) -> float:
    """How long threads of this process have waited for a CPU that others had; 0 where unknown.

    The second number of Linux' ``schedstat``, in nanoseconds.
    """
    total = 0
    for task in tasks.glob("*/schedstat"):
        _, _, text = (read_text(task) or "").partition(" ")
        total += int(text.partition(" ")[0] or 0)
    return total * 1e-9


def bound_run(
    operator: str,
    values: Sequence[Array],
    output: Array,
    settings: SessionSettings,
) -> Callable[[], object]:
    """One run of an operator of equal shapes, from ``values`` into ``output``.

    Both are bound beforehand: a new array's pages would be counted as well.
    """
    graph = one_node(operator, len(values), output.shape)
    session = open_session(graph, "cpu", settings)
    binding = session.io_binding()
    for index, value in enumerate(values):
        binding.bind_ortvalue_input(f"x{index}", ort.OrtValue.ortvalue_from_numpy(value))
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(output))
    borrowed = *values, output

    def run() -> None:
        assert borrowed, "the binding does not keep the arrays alive"
        session.run_with_iobinding(binding)

    return run


def one_node(
    operator: str, inputs: int, shape: Sequence[int], kind: int = TensorProto.FLOAT
) -> bytes:
    """A model that is one operator: inputs ``x0``… and the output ``y``, of one shape and type."""
    names = [f"x{index}" for index in range(inputs)]
    ends = [helper.make_tensor_value_info(name, kind, shape) for name in (*names, "y")]
    node = helper.make_node(operator, names, ["y"])
    graph = helper.make_graph([node], operator, ends[:-1], ends[-1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())
