"""Price models that cannot be timed here from their operations.

A declared model has no graph, and a large one does not fit the machines that we can measure on.
Both are priced on machines with accelerators for such models, as ranges that are never pooled with
timed rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from epochcost.analysis.arithmetic import arithmetic_of_model
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.rows import Row, mark_of
from epochcost.cost import Estimate, MachineTime, Time
from epochcost.cost.flops import UTILISATION, peak_flops, time_of_large_models, training_flops
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.hardware import Hardware
from epochcost.specs.model import Model
from epochcost.specs.price import Price
from epochcost.units import MAX_DURATION_SECONDS

# A weight, its gradient and Adam's two moments, of four bytes each.
_BYTES_PER_PARAMETER = 16
# The memory of a common GPU: a training that needs more does not fit one.
_LARGE_BYTES = 16 * 2**30
# Large models are sharded over accelerators with much memory.
_LEAST_DEVICE_GIB = 40


@dataclass(frozen=True, slots=True)
class EstimatedRow:
    """The full training on one machine of a kind under one plan: ``cost`` is the bill of ``time``.

    ``time`` is at the highest, the middle and the lowest utilisation.
    """

    hardware: Hardware
    price: Price
    flops: Decimal
    peak_flops: Decimal
    time: Time
    cost: Estimate

    @property
    def mark(self) -> str:
        """The kind of evidence, in the words of tables and legends."""
        return mark_of("estimated", self.price)

    @property
    def utilisation(self) -> str:
        """The share of the peak that is assumed, as a phrase."""
        return UTILISATION


def estimated_rows(inputs: Inputs, rows: tuple[Row, ...]) -> Mapping[str, tuple[EstimatedRow, ...]]:
    """The rows of each estimated model, by its id; possible choices and cheap ones first.

    Left out are models with a timed training, models whose operations cannot be counted, and models
    that fit no machine's accelerators.
    """
    catalogue = inputs.catalogue
    timed = {row.observed.workload.id for row in rows if row.mode == "training"}
    machines = [machine for machine in catalogue.hardware.values() if trains_large_models(machine)]
    estimates = {}
    for model in catalogue.models.values():
        flops = None if model.id in timed else _flops(inputs, model)
        if flops is not None:
            needed = states_bytes(inputs.catalogue, model, inputs.cache)
            holding = [machine for machine in machines if needed <= _memory_bytes(machine)]
            priced = [row for machine in holding for row in _on(catalogue, machine, flops)]
            priced.sort(key=lambda row: (bool(row.price.reservation), row.cost.mean))
            estimates[model.id] = tuple(priced)
    return estimates


def states_bytes(catalogue: Catalogue, model: Model, cache: Path | None = None) -> int:
    """The bytes that training stores for the parameters of a model, without activations.

    0 if its parameters are neither declared nor counted.
    """
    if model.declared is not None:
        return int(model.declared.parameters * _BYTES_PER_PARAMETER)
    counted = arithmetic_of_model(catalogue, model, cache)
    return counted.parameters * _BYTES_PER_PARAMETER if counted else 0


def _memory_bytes(hardware: Hardware) -> float:
    """Memory of all accelerators together."""
    gpus = hardware.accelerators
    return float(sum((gpu.memory_gib or 0) * gpu.count for gpu in gpus)) * 2**30


def _on(catalogue: Catalogue, hardware: Hardware, flops: Decimal) -> Iterator[EstimatedRow]:
    """Price the work under each current plan; no row for an unknown peak or over a century."""
    peak = peak_flops(hardware, "fp16")
    if peak is None:
        return
    time = time_of_large_models(flops, peak)
    if time.high > MAX_DURATION_SECONDS:
        return
    for price in current_prices(catalogue.prices_of(hardware.id)):
        cost = MachineTime(time, hardware.vcpus, accelerated=True).cost(price)
        if isinstance(cost, Estimate):
            yield EstimatedRow(hardware, price, flops, peak, time, cost)


def _flops(inputs: Inputs, model: Model) -> Decimal | None:
    """Operations of the full training; None for a model that is small or cannot be counted."""
    catalogue = inputs.catalogue
    if model.declared is not None:
        return training_flops(model, None)
    counted = arithmetic_of_model(catalogue, model, inputs.cache)
    if counted is None or counted.parameters * _BYTES_PER_PARAMETER <= _LARGE_BYTES:
        return None
    return training_flops(model, counted.forward_flops)


def trains_large_models(hardware: Hardware) -> bool:
    """Whether large models are priced on such machines."""
    return bool(hardware.accelerators) and all(
        (gpu.memory_gib or 0) >= _LEAST_DEVICE_GIB for gpu in hardware.accelerators
    )
