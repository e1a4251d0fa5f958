"""Energy and emissions of computing, from power, time, the building's PUE and the grid.

The PUE (power usage effectiveness) is the building's energy divided by the machines' energy.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost.money import exact_arithmetic, quantized
from epochcost.cost.owned import WATTS_PER_KILOWATT
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.specs.reference_data import Grid
from epochcost.specs.terms import Owned
from epochcost.units import SECONDS_PER_HOUR, plain


@dataclass(frozen=True, slots=True)
class Power:
    """Mean watts of a machine, above 0, and their source."""

    watts: Decimal
    phrase: str


@dataclass(frozen=True, slots=True)
class UnknownEnergy:
    """An energy that is unknown, not zero; ``reason`` is a phrase for people."""

    reason: str


@dataclass(frozen=True, slots=True)
class EnergyUse:
    """The energy that machines use, and the resulting emissions; no bill uses these numbers.

    ``machines_kwh`` leaves out the building's overhead; ``kg_co2e`` (CO2 equivalent) includes it.
    """

    power: Power
    pue: Decimal
    pue_source: str
    grid: Grid
    machines_kwh: Decimal
    kg_co2e: Decimal


def energy_use(
    power: Power, machine_seconds: Decimal, grid: Grid, pue: Decimal | None = None
) -> EnergyUse:
    """The energy and emissions of machines that run for ``machine_seconds`` in all.

    A ``pue`` of None means the grid's PUE, or else 1.
    """
    if pue is not None:
        source = "declared"
    else:
        source = f"of {grid.id}" if grid.pue is not None else "not known, the machines alone"
        pue = grid.pue or Decimal(1)
    with exact_arithmetic():
        hours = machine_seconds / SECONDS_PER_HOUR
        machines = quantized(power.watts * hours / WATTS_PER_KILOWATT)
        emitted = quantized(quantized(machines * pue) * grid.kg_co2e_per_kwh)
    return EnergyUse(power, pue, source, grid, machines, emitted)


def declared_power(
    hardware: Hardware, price: Price | None = None, vcpus: int | None = None
) -> Power | UnknownEnergy:
    """The power of a working machine, or the reason why it is unknown.

    If ``price`` is of an owned machine, its plan states the power, else the machine's spec. If the
    spec has only the power of the accelerators, the result covers only these and says so.
    """
    if price is not None and price.owned is not None:
        return _owned_power(price.owned, vcpus)
    unknown = [gpu.name for gpu in hardware.accelerators if gpu.power_watts is None]
    if unknown:
        return UnknownEnergy(f"{hardware.id}: the power of {', '.join(unknown)} is not known")
    drawn = [gpu.power_watts * gpu.count for gpu in hardware.accelerators if gpu.power_watts]
    if hardware.busy_watts is not None:
        return _declared(hardware.busy_watts + sum(drawn, Decimal(0)), hardware.id)
    if not drawn:
        return UnknownEnergy(f"{hardware.id}: its power is not known")
    return _declared(sum(drawn, Decimal(0)), f"the accelerators of {hardware.id} alone")


def _owned_power(plan: Owned, vcpus: int | None) -> Power | UnknownEnergy:
    if not plan.per_vcpu:
        return _declared(plan.power_watts, "the owned machine")
    if vcpus is None:
        return UnknownEnergy("the plan's power is per vCPU, and their number is unknown")
    return _declared(plan.power_watts * vcpus, f"{vcpus} vCPUs of the owned machine")


def _declared(watts: Decimal, of: str) -> Power:
    return Power(watts, f"from declared power: {plain(watts)} W of {of}")
