"""Estimate training costs of models that cannot be timed, from their number of operations.

Such a model has no graph, or does not fit the machines on which we can measure. The results are
ranges on machines with large accelerators, and are never mixed with timed rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path

from epochcost.analysis.arithmetic import arithmetic_of_model
from epochcost.analysis.inputs import Inputs
from epochcost.analysis.rows import Row, mark_of, usual_currency
from epochcost.cost.estimate import Estimate, MachineTime, Time
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
    """A model's full training on a machine under a price plan, with its time and its cost.

    The low end of ``time`` assumes the highest utilisation of ``peak_flops`` (operations a second).
    """

    model: Model
    hardware: Hardware
    price: Price
    flops: Decimal
    peak_flops: Decimal
    time: Time
    cost: Estimate

    @property
    def mark(self) -> str:
        """The text "estimated", with a note if the price is assumed."""
        return mark_of("estimated", self.price)

    @property
    def utilisation(self) -> str:
        """The assumed range of the utilisation of the peak rate, as a phrase with its source."""
        return UTILISATION


def estimated_rows(inputs: Inputs, rows: tuple[Row, ...]) -> Mapping[str, tuple[EstimatedRow, ...]]:
    """Estimated rows by model id, for models without a timed training in ``rows``.

    The cheapest row comes first. Rows whose price has a drawback (it is assumed, say) follow, then
    rows in an unusual currency. Machines must hold the weights, gradients and Adam moments. A model
    with a graph has no entry if these fit into 16 GiB, a common GPU's memory. Models whose
    operations are unknown have no entry.
    """
    catalogue = inputs.catalogue
    timed = {row.observed.workload.id for row in rows if row.mode == "training"}
    machines = [machine for machine in catalogue.hardware.values() if trains_large_models(machine)]
    # In bytes, of all accelerators together.
    memories = {
        machine.id: 2**30 * sum((gpu.memory_gib or 0) * gpu.count for gpu in machine.accelerators)
        for machine in machines
    }
    estimates = {}
    for model in catalogue.models.values():
        needed = states_bytes(catalogue, model, inputs.cache)
        if model.id in timed or (model.declared is None and needed <= _LARGE_BYTES):
            continue
        counted = arithmetic_of_model(catalogue, model, inputs.cache)
        flops = training_flops(model, counted.forward_flops if counted else None)
        if flops is not None:
            priced = [
                row
                for machine in machines
                if needed <= memories[machine.id]
                for row in _estimates_by_plan(catalogue, model, machine, flops)
            ]
            usual = usual_currency(row.cost.currency for row in priced)
            estimates[model.id] = tuple(sorted(priced, key=partial(_cheapest_first, usual)))
    return estimates


def _cheapest_first(usual: str | None, row: EstimatedRow) -> tuple[bool, bool, Decimal]:
    return row.cost.currency != usual, bool(row.price.reservation), row.cost.mean


def states_bytes(catalogue: Catalogue, model: Model, cache: Path | None = None) -> int:
    """Bytes of weights, gradients and Adam moments, without activations; 0 if they are unknown."""
    if model.declared is not None:
        return int(model.declared.parameters * _BYTES_PER_PARAMETER)
    counted = arithmetic_of_model(catalogue, model, cache)
    return counted.parameters * _BYTES_PER_PARAMETER if counted else 0


def _estimates_by_plan(
    catalogue: Catalogue, model: Model, hardware: Hardware, flops: Decimal
) -> Iterator[EstimatedRow]:
    peak = peak_flops(hardware, "fp16")
    if peak is None:
        return
    time = time_of_large_models(flops, peak)
    if time.high > MAX_DURATION_SECONDS:
        return
    for price in current_prices(catalogue.prices_of(hardware.id)):
        cost = MachineTime(time, hardware.vcpus, accelerated=True).cost(price)
        if isinstance(cost, Estimate):
            yield EstimatedRow(model, hardware, price, flops, peak, time, cost)


def trains_large_models(hardware: Hardware) -> bool:
    """Whether the machine has accelerators, each with enough memory for large models."""
    return bool(hardware.accelerators) and all(
        (gpu.memory_gib or 0) >= _LEAST_DEVICE_GIB for gpu in hardware.accelerators
    )
