"""Costs of owned machines: loss of value, rack, maintenance and energy.

Each hour of use pays an equal part of the costs that arise without use, such as the rack.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from epochcost.cost.lines import Line
from epochcost.cost.money import quantized
from epochcost.cost.tracing import is_zero
from epochcost.errors import InputError
from epochcost.specs.terms import Owned
from epochcost.units import SECONDS_PER_HOUR

# A year has 365.25 days, and a month is a twelfth of it; for rented machines a month has
# `units.HOURS_PER_BILLED_MONTH`.
HOURS_PER_YEAR = 8766
MONTHS_PER_YEAR = 12
HOURS_PER_CALENDAR_MONTH = Decimal(HOURS_PER_YEAR) / MONTHS_PER_YEAR
WATTS_PER_KILOWATT = 1000


def running_per_month(plan: Owned) -> Decimal:
    """Monthly cost of rack, maintenance and idle energy; per vCPU if the plan is per vCPU."""
    idle_kwh = plan.idle_watts * plan.pue * HOURS_PER_CALENDAR_MONTH / WATTS_PER_KILOWATT
    upkeep = plan.rack_per_month + plan.maintenance_per_year / MONTHS_PER_YEAR
    return upkeep + idle_kwh * plan.electricity_per_kwh


def energy_per_hour(plan: Owned) -> Decimal:
    """Energy cost of an hour of use minus an idle hour's; per vCPU if the plan is per vCPU."""
    per_watt = plan.pue / WATTS_PER_KILOWATT * plan.electricity_per_kwh
    return (plan.power_watts - plan.idle_watts) * per_watt


def owned_lines(plan: Owned, seconds: Decimal, units: Decimal | int) -> Iterator[Line]:
    """Yield the lines of a bill for ``seconds`` of use: depreciation, rack, maintenance and energy.

    ``units`` is the number of machines or vCPUs. With a utilisation u, each hour of use pays for
    1/u - 1 idle hours. Rack and maintenance have a line only if the plan states their cost.
    """
    hours = quantized(seconds / SECONDS_PER_HOUR)
    for label, quantity, unit, rate in _rated_quantities(plan, hours):
        yield Line(label, quantity * units, unit, rate, quantized(quantity * rate) * units)


def _rated_quantities(plan: Owned, hours: Decimal) -> Iterator[tuple[str, Decimal, str, Decimal]]:
    """Yield each bill line's label, quantity, unit and rate, for a vCPU if ``plan`` is per vCPU."""
    unit = "vCPU-hour" if plan.per_vcpu else "hour"
    used_hours = plan.years * HOURS_PER_YEAR * plan.utilisation
    yield "depreciation", hours, unit, quantized((plan.purchase - plan.residual) / used_hours)
    for label, yearly in (
        ("rack", plan.rack_per_month * MONTHS_PER_YEAR),
        ("maintenance", plan.maintenance_per_year),
    ):
        if yearly > 0:
            yield label, hours, unit, quantized(yearly / (HOURS_PER_YEAR * plan.utilisation))
    idle_hours = hours * (1 / plan.utilisation - 1)
    idle_kwh = quantized(idle_hours * plan.idle_watts * plan.pue / WATTS_PER_KILOWATT)
    if not is_zero(idle_kwh):
        label = "idle energy, from declared power"
        yield label, idle_kwh, "kWh", plan.electricity_per_kwh
    energy_kwh = quantized(hours * plan.power_watts * plan.pue / WATTS_PER_KILOWATT)
    yield "energy, from declared power", energy_kwh, "kWh", plan.electricity_per_kwh


def owned_units(plan: Owned, price_id: str, vcpus: int | None, *, accelerated: bool = False) -> int:
    """Number of units to bill for a machine: its vCPUs if the plan is per vCPU, else 1.

    Raises InputError for a plan per vCPU if ``vcpus`` is None or the work is ``accelerated``.
    """
    if not plan.per_vcpu:
        return 1
    if accelerated:
        raise InputError(
            f"{price_id}: this plan prices vCPUs and no accelerator; "
            "add a price of the machine to specs/prices/"
        )
    if vcpus is None:
        raise InputError(
            f"{price_id}: this plan is per vCPU; state the machine's vCPUs (--vcpus, or `vcpus` in "
            "the machine's spec)"
        )
    return vcpus
