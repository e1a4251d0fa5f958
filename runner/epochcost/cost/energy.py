"""Energy and emissions of computing: power over time, the building's share, the grid's emissions.

Sources differ in their assumptions more than in their formula, so an assumption set is a value
with a name and a source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType

from epochcost.cost.money import exact_arithmetic, kept
from epochcost.units import SECONDS_PER_HOUR

WATTS_PER_KILOWATT = 1000


@dataclass(frozen=True, slots=True)
class Assumptions:
    """``pue``: building over machine; ``pounds_per_kwh``: pounds of CO2 equivalent emitted."""

    pue: Decimal
    pounds_per_kwh: Decimal


# Strubell, Ganesh, McCallum 2019 (arXiv 1906.02243), section 2: the average PUE of data centres in
# 2018, and the average emissions of power in the United States (EPA). Power is of all machines.
STRUBELL_2019 = Assumptions(pue=Decimal("1.58"), pounds_per_kwh=Decimal("0.954"))
ASSUMPTIONS: Mapping[str, Assumptions] = MappingProxyType({"strubell-2019": STRUBELL_2019})


def energy_kwh(power_watts: Decimal, duration_seconds: Decimal, pue: Decimal) -> Decimal:
    """Take ``pue`` times the power over the time: kilowatt-hours drawn by the building."""
    with exact_arithmetic():
        hours = duration_seconds / SECONDS_PER_HOUR
        return kept(pue * hours * power_watts / WATTS_PER_KILOWATT)


def emissions_pounds(energy: Decimal, pounds_per_kwh: Decimal) -> Decimal:
    """Pounds of CO2 equivalent of an energy in kilowatt-hours."""
    with exact_arithmetic():
        return kept(energy * pounds_per_kwh)
