"""Estimate a range for the time of a training that nobody timed, from its operations.

The time is operations ÷ (peak rate × utilisation), for an assumed range of the utilisation.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from epochcost.cost.estimate import Time
from epochcost.cost.money import CONTEXT, exact_arithmetic
from epochcost.graphs.profile import PASSES_PER_STEP
from epochcost.specs.hardware import Hardware
from epochcost.specs.model import Model

Precision = Literal["fp16", "fp32"]
_OPERATIONS_PER_TERA = Decimal(10) ** 12


# Utilisation of GPUs and TPUs by large language models: GPT-3 21.3 %, Megatron-Turing 30.2 %,
# Gopher 32.5 %, PaLM 46.2 % (Chowdhery et al. 2022, arXiv 2204.02311, table 3), rounded outward.
_LEAST_USED, _MOST_USED = Decimal("0.2"), Decimal("0.5")
UTILISATION = (
    f"{_LEAST_USED} to {_MOST_USED} of the peak (large language models, Chowdhery et al. 2022, "
    "table 3)"
)


def time_of_large_models(flops: Decimal, peak: Decimal) -> Time:
    """The time of ``flops`` operations at the utilisation of large models; ``peak`` in FLOP/s."""
    with exact_arithmetic():
        shares = (_MOST_USED, (_LEAST_USED + _MOST_USED) / 2, _LEAST_USED)
        return Time(*(flops / (peak * share) for share in shares))


def training_flops(model: Model, forward_flops_per_example: float | None) -> Decimal | None:
    """Operations of a model's whole training; None if unknown.

    A model declared without a graph takes 6 operations for each parameter and token. By convention,
    training a graph takes the operations of three forward passes for each example.
    """
    if model.declared is not None:
        return Decimal(model.declared.training_flops)
    if model.training is None or forward_flops_per_example is None:
        return None
    examples = model.training.examples_per_epoch * model.training.epochs
    return CONTEXT.multiply(PASSES_PER_STEP * Decimal(forward_flops_per_example), Decimal(examples))


def peak_flops(hardware: Hardware, precision: Precision) -> Decimal | None:
    """Peak FLOP/s of all accelerators of a machine; None if the machine's spec states none."""
    with exact_arithmetic():
        total = Decimal(0)
        for gpu in hardware.accelerators:
            peak = gpu.peak_fp16_tflops if precision == "fp16" else gpu.peak_fp32_tflops
            if peak is None:
                return None
            total += peak * gpu.count
        return total * _OPERATIONS_PER_TERA or None
