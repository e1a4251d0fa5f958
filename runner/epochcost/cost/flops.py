"""Time from arithmetic: what a training takes on machines that nobody timed it on. Always a range.

A training of so many floating-point operations on a machine of some peak takes
operations / (peak x utilisation), and nobody knows the utilisation of a training that was never
run: it is declared as a range.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from epochcost.cost.estimate import Time
from epochcost.cost.money import CONTEXT, exact_arithmetic
from epochcost.errors import InputError
from epochcost.specs.hardware import Hardware
from epochcost.specs.model import Model
from epochcost.units import MAX_DURATION_SECONDS

Precision = Literal["fp16", "fp32"]
# A training step is as many forward passes, as the literature counts it.
PASSES_PER_STEP = 3
_OPERATIONS_PER_TERA = Decimal(10) ** 12


@dataclass(frozen=True, slots=True)
class Utilisation:
    """The share of its peak that a machine achieves lies within [low, high]; ``source`` says why.

    Raises InputError unless 0 < low <= high <= 1.
    """

    low: Decimal
    high: Decimal
    source: str

    def __post_init__(self) -> None:
        finite = self.low.is_finite() and self.high.is_finite()
        if not finite or not 0 < self.low <= self.high <= 1:
            raise InputError(
                "utilisation: expected shares of the peak, 0 < low <= high <= 1, "
                f"got {self.low:.6g} to {self.high:.6g}"
            )

    @property
    def words(self) -> str:
        """The share or range with its source, for people."""
        ends = dict.fromkeys(f"{float(end):.3g}" for end in (self.low, self.high))
        return f"{' to '.join(ends)} of the peak ({self.source})"


# Of large language models on GPUs and TPUs: GPT-3 21.3 %, Megatron-Turing 30.2 %, Gopher 32.5 %,
# PaLM 46.2 % (Chowdhery et al. 2022, arXiv 2204.02311, table 3), rounded outward.
OF_LARGE_MODELS = Utilisation(
    Decimal("0.2"), Decimal("0.5"), "large language models, Chowdhery et al. 2022, table 3"
)


@dataclass(frozen=True, slots=True)
class Computation:
    """``flops`` of work on one machine of ``peak_flops`` per second."""

    flops: Decimal
    peak_flops: Decimal
    utilisation: Utilisation

    def time(self) -> Time:
        """The time, whose ``mean`` is at the middle of the utilisations.

        Raises InputError beyond 100 years.
        """
        ends = self.utilisation.low, self.utilisation.high
        with exact_arithmetic():
            at = (ends[1], sum(ends, Decimal(0)) / 2, ends[0])
            low, mean, high = (self.flops / (self.peak_flops * share) for share in at)
        if high > MAX_DURATION_SECONDS:
            raise InputError(
                f"time: expected at most 100 years, got {high / MAX_DURATION_SECONDS * 100:,.0f} "
                "years: name a faster machine"
            )
        return Time(low, mean, high)


def training_flops(model: Model, forward_flops_per_example: float | None) -> Decimal | None:
    """The operations of a model's whole training; None where they cannot be known.

    6 for each parameter and token of a declared model; for a graph three forward passes for each
    example, as the literature counts a training step.
    """
    if model.declared is not None:
        return Decimal(model.declared.training_flops)
    if model.training is None or forward_flops_per_example is None:
        return None
    examples = model.training.examples_per_epoch * model.training.epochs
    return CONTEXT.multiply(PASSES_PER_STEP * Decimal(forward_flops_per_example), Decimal(examples))


def peak_flops(hardware: Hardware, precision: Precision) -> Decimal:
    """Operations per second of all accelerators together, or of the CPU where there are none.

    Raises InputError where the spec does not say them.
    """
    if hardware.accelerators:
        peaks = [
            (gpu.peak_fp16_tflops if precision == "fp16" else gpu.peak_fp32_tflops, gpu.count)
            for gpu in hardware.accelerators
        ]
    else:
        peaks = [(hardware.peak_fp32_tflops if precision == "fp32" else None, 1)]
    if any(peak is None for peak, _ in peaks):
        raise InputError(
            f"{hardware.id}: expected a machine whose spec says its {precision} peak, found none"
        )
    with exact_arithmetic():
        total = sum((peak * count for peak, count in peaks if peak is not None), Decimal(0))
        return total * _OPERATIONS_PER_TERA
