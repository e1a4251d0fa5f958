"""Compute energy and emissions of a job on each machine, or give the reason why they are unknown.

The energy comes from meters, or from the power that a spec declares. The electricity grid of a
machine is seldom known, so emissions are a range over all declared grids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from epochcost.analysis.observations import Goal
from epochcost.analysis.rows import Row, better_known, contenders
from epochcost.cost.energy import EnergyUse, Power, UnknownEnergy, declared_power, energy_use
from epochcost.specs.catalogue import Catalogue
from epochcost.statistics import group_by


@dataclass(frozen=True)
class MachineEnergy:
    """Energy and emissions of a job on a machine.

    ``row`` is the machine's cheapest row, or its fastest if no cost is known. ``least`` is for the
    cleanest grid in specs/grids, ``most`` for the dirtiest. If both are None, ``unknown`` says why.
    """

    row: Row
    goal: Goal
    least: EnergyUse | None = None
    most: EnergyUse | None = None
    unknown: str = ""


def energy_by_machine(catalogue: Catalogue, rows: Sequence[Row]) -> tuple[MachineEnergy, ...]:
    """Energy and emissions on each timed machine: least energy first, unknown last.

    They are those of a full training or, if no row has one, of a million inferences.
    """
    goal: Goal = "full" if any(row.mode == "training" for row in rows) else "million"
    machines = group_by(better_known(rows, goal), lambda row: row.observed.machine).values()
    energies = [energy for mine in machines if (energy := _on_machine(catalogue, mine, goal))]
    unknown = Decimal("Infinity")
    return tuple(sorted(energies, key=lambda use: use.least.machines_kwh if use.least else unknown))


def _on_machine(catalogue: Catalogue, rows: Sequence[Row], goal: Goal) -> MachineEnergy | None:
    timed = [row for row in rows if row.answers and row.time(goal)]
    best = contenders(rows, goal) or sorted(timed, key=lambda row: _seconds(row, goal))
    if not best:
        return None
    row, seconds = best[0], _seconds(best[0], goal)
    power = _metered_or_declared_power(catalogue, row)
    if isinstance(power, UnknownEnergy):
        return MachineEnergy(row, goal, unknown=power.reason)
    if not catalogue.grids:
        return MachineEnergy(row, goal, unknown="no grid is declared in specs/grids")
    pue = row.price.owned.pue if row.price and row.price.owned else None
    energies = [energy_use(power, seconds, grid, pue) for grid in catalogue.grids.values()]
    ordered = sorted(energies, key=lambda use: use.kg_co2e)
    return MachineEnergy(row, goal, ordered[0], ordered[-1])


def _seconds(row: Row, goal: Goal) -> Decimal:
    return row.observed.work(goal).time.mean


def _metered_or_declared_power(catalogue: Catalogue, row: Row) -> Power | UnknownEnergy:
    observed = row.observed
    if observed.watts is not None and observed.watts > 0:
        meter = observed.meters or "an unnamed meter"
        return Power(Decimal(repr(observed.watts)), f"measured by {meter}")
    machine = observed.machine
    hardware = catalogue.hardware[machine.hardware]
    declared = declared_power(hardware, row.price, machine.vcpus)
    if isinstance(declared, UnknownEnergy):
        read = "no meter was read" if observed.kind == "measured" else "the source states none"
        return UnknownEnergy(f"{read}, and {declared.reason}")
    return declared
