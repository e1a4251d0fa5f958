"""Owned machines: what an hour of use takes off their value, and the energy that it burns."""

from __future__ import annotations

from decimal import Decimal

from epochcost.cost.lines import Line, Usage
from epochcost.cost.money import kept
from epochcost.errors import InputError
from epochcost.specs.owned import Owned
from epochcost.units import SECONDS_PER_HOUR

# The Julian year of 365.25 days.
HOURS_PER_YEAR = 8766
WATTS_PER_KILOWATT = 1000


def owned_lines(plan: Owned, usage: Usage, price_id: str) -> tuple[Line, ...]:
    """Depreciation and energy of the used time, per vCPU where the plan says so.

    Raises InputError where the plan is per vCPU and the usage does not say how many there are, or
    is of an accelerator, whose price is not in it.
    """
    units = usage.count * _units_per_machine(plan, usage, price_id)
    hours = kept(usage.duration_seconds / SECONDS_PER_HOUR)
    energy_kwh = kept(hours * plan.power_watts * plan.pue / WATTS_PER_KILOWATT)
    hourly = depreciation_per_hour(plan)
    return (
        _line("depreciation", hours, units, "vCPU-hour" if plan.per_vcpu else "hour", hourly),
        _line("energy, from declared power", energy_kwh, units, "kWh", plan.electricity_per_kwh),
    )


def depreciation_per_hour(plan: Owned) -> Decimal:
    """Loss of value per hour of use: (purchase - residual) / (years x 8766 h x utilisation)."""
    used_hours = plan.years * HOURS_PER_YEAR * plan.utilisation
    return kept((plan.purchase - plan.residual) / used_hours)


def _line(label: str, quantity: Decimal, units: int, unit: str, rate: Decimal) -> Line:
    return Line(label, quantity * units, unit, rate, kept(quantity * rate) * units)


def _units_per_machine(plan: Owned, usage: Usage, price_id: str) -> int:
    if not plan.per_vcpu:
        return 1
    if usage.accelerated:
        raise InputError(
            f"{price_id}: this plan prices vCPUs and no accelerator; "
            "give the machine a price of its own in specs/prices/"
        )
    if usage.vcpus is None:
        raise InputError(
            f"{price_id}: this plan is per vCPU; say how many vCPUs the machine has (--vcpus)"
        )
    return usage.vcpus
