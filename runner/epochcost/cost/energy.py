"""Energy and emissions of computing: power over time, the building's part, the grid's emissions.

Sources differ more in their assumptions than in their formula. So each set of assumptions has a
name and a source, and each energy says whether a meter measured it or it follows from a declared
power.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from epochcost.cost.money import exact_arithmetic, quantized
from epochcost.cost.owned import WATTS_PER_KILOWATT
from epochcost.errors import InputError
from epochcost.specs.hardware import Hardware
from epochcost.specs.price import Price
from epochcost.specs.reference_data import Grid
from epochcost.specs.terms import Owned
from epochcost.units import SECONDS_PER_HOUR, plain

JOULES_PER_KILOWATT_HOUR = WATTS_PER_KILOWATT * SECONDS_PER_HOUR


@dataclass(frozen=True, slots=True)
class Assumptions:
    """A source's assumptions for emissions.

    ``pue`` is the energy of the building divided by that of the machines. ``pounds_per_kwh`` is the
    mass of CO2 equivalent that a kilowatt-hour emits.
    """

    pue: Decimal
    pounds_per_kwh: Decimal


# Strubell, Ganesh, McCallum 2019 (arXiv 1906.02243), section 2: the average PUE of data centres in
# 2018, and the average emissions of power in the United States (EPA). Power is of all machines.
STRUBELL_2019 = Assumptions(pue=Decimal("1.58"), pounds_per_kwh=Decimal("0.954"))


@dataclass(frozen=True, slots=True)
class EnergyReading:
    """Energy of all machines over the whole use, as a meter measured it.

    Raises InputError for joules that are not positive and finite.
    """

    joules: Decimal
    meter: str

    def __post_init__(self) -> None:
        _demand_positive("energy", self.joules, "joules")

    @classmethod
    def at(cls, mean_watts: float, machine_seconds: Decimal, meter: str) -> EnergyReading:
        """The energy of machines with a metered mean power over all their seconds together."""
        with exact_arithmetic():
            return cls(quantized(Decimal(repr(mean_watts)) * machine_seconds), meter)

    @property
    def phrase(self) -> str:
        """The source of the energy figure, for people."""
        return f"measured by {self.meter}"

    def kwh(self, _machine_seconds: Decimal) -> Decimal:
        """Energy of the machines in kilowatt-hours; call it within `exact_arithmetic`."""
        return quantized(self.joules / JOULES_PER_KILOWATT_HOUR)


@dataclass(frozen=True, slots=True)
class DeclaredPower:
    """Power of one machine in watts, as a spec or a plan declares it.

    ``of`` names the parts that draw it. Raises InputError for watts that are not positive and
    finite.
    """

    watts: Decimal
    of: str = "the machine"

    def __post_init__(self) -> None:
        _demand_positive("power", self.watts, "watts")

    @property
    def phrase(self) -> str:
        """The source of the energy figure, for people."""
        return f"from declared power: {plain(self.watts)} W of {self.of}"

    def kwh(self, machine_seconds: Decimal) -> Decimal:
        """Energy of the machines in kilowatt-hours; call it within `exact_arithmetic`."""
        hours = machine_seconds / SECONDS_PER_HOUR
        return quantized(self.watts * hours / WATTS_PER_KILOWATT)


Power = EnergyReading | DeclaredPower


@dataclass(frozen=True, slots=True)
class UnknownEnergy:
    """An unknown energy, which is different from zero; ``reason`` is a phrase for people."""

    reason: str


@dataclass(frozen=True, slots=True)
class EnergyUse:
    """The energy that machines use and the emissions that this causes; neither is billed.

    ``machines_kwh`` is the machines' energy, ``building_kwh`` that times ``pue``. ``kg_co2e`` are
    kilograms of CO2 equivalent.
    """

    power: Power
    pue: Decimal
    pue_source: str
    grid: Grid
    machines_kwh: Decimal
    building_kwh: Decimal
    kg_co2e: Decimal


def energy_use(
    power: Power, machine_seconds: Decimal, grid: Grid, pue: Decimal | None = None
) -> EnergyUse:
    """The energy and emissions of using all machines for ``machine_seconds`` together.

    If ``pue`` is None, the function uses the PUE of the grid, or 1 (the machines without the
    building) if the grid's source states none. Raises InputError for a PUE below 1.
    """
    if pue is not None:
        source = "declared"
    else:
        source = f"of {grid.id}" if grid.pue is not None else "not known, the machines alone"
        pue = grid.pue or Decimal(1)
    if not pue.is_finite() or pue < 1:
        raise InputError(f"PUE: expected at least 1, finite, got {pue:.6g}")
    with exact_arithmetic():
        machines = power.kwh(machine_seconds)
        building = quantized(machines * pue)
        return EnergyUse(
            power, pue, source, grid, machines, building, quantized(building * grid.kg_co2e_per_kwh)
        )


def declared_power(hardware: Hardware) -> DeclaredPower | UnknownEnergy:
    """The power of a busy machine by its spec, or the reason why it is unknown.

    If the power of the host is unknown, the result is the power of the accelerators alone and says
    so.
    """
    unknown = [gpu.name for gpu in hardware.accelerators if gpu.power_watts is None]
    if unknown:
        return UnknownEnergy(f"{hardware.id}: the power of {', '.join(unknown)} is not known")
    drawn = [gpu.power_watts * gpu.count for gpu in hardware.accelerators if gpu.power_watts]
    if hardware.busy_watts is not None:
        return DeclaredPower(hardware.busy_watts + sum(drawn, Decimal(0)), hardware.id)
    if not drawn:
        return UnknownEnergy(f"{hardware.id}: its power is not known")
    return DeclaredPower(sum(drawn, Decimal(0)), f"the accelerators of {hardware.id} alone")


def owned_power(plan: Owned, vcpus: int | None) -> DeclaredPower | UnknownEnergy:
    """The power of a machine in use by its owned plan, or the reason why the plan has none."""
    if not plan.per_vcpu:
        return DeclaredPower(plan.power_watts, "the owned machine")
    if vcpus is None:
        return UnknownEnergy("the plan's power is per vCPU, and their number is unknown")
    return DeclaredPower(plan.power_watts * vcpus, f"{vcpus} vCPUs of the owned machine")


def declared_power_of(
    price: Price | None, hardware: Hardware, vcpus: int | None
) -> DeclaredPower | UnknownEnergy:
    """The power of a machine in use: by its owned plan if there is one, else by its spec."""
    if price is not None and price.owned is not None:
        return owned_power(price.owned, vcpus)
    return declared_power(hardware)


def _demand_positive(name: str, value: Decimal, unit: str) -> None:
    if not value.is_finite() or value <= 0:
        raise InputError(f"{name}: expected {unit} above 0, finite, got {value:.6g}")


def energy_kwh(power_watts: Decimal, duration_seconds: Decimal, pue: Decimal) -> Decimal:
    """Energy of the building in kilowatt-hours: ``pue`` times power times duration."""
    with exact_arithmetic():
        hours = duration_seconds / SECONDS_PER_HOUR
        return quantized(pue * hours * power_watts / WATTS_PER_KILOWATT)


def emissions_pounds(energy: Decimal, pounds_per_kwh: Decimal) -> Decimal:
    """Pounds of CO2 equivalent that an energy in kilowatt-hours emits."""
    with exact_arithmetic():
        return quantized(energy * pounds_per_kwh)
