"""Energy and emissions by the assumptions of a source."""

from __future__ import annotations

from decimal import Decimal

import pytest

from epochcost.cost.energy import STRUBELL_2019, emissions_pounds, energy_kwh
from epochcost.errors import InputError

HOUR = 3600


@pytest.mark.parametrize(
    ("watts", "hours", "kwh", "pounds"),
    [("1415.78", 12, 27, 26), ("1515.43", 274_120, 656_347, 626_155), ("517.66", 336, 275, 262)],
)
def test_rows_of_strubell(watts: str, hours: int, kwh: int, pounds: int) -> None:
    """Transformer base, the architecture search and ELMo, as the paper prints them."""
    energy = energy_kwh(Decimal(watts), Decimal(hours * HOUR), STRUBELL_2019.pue)
    assert round(energy) == kwh
    assert round(emissions_pounds(energy, STRUBELL_2019.pounds_per_kwh)) == pounds


def test_a_kilowatt_for_an_hour_without_a_building() -> None:
    """Exactly one kilowatt-hour."""
    assert energy_kwh(Decimal(1000), Decimal(HOUR), Decimal(1)) == 1


def test_figures_beyond_reason_are_refused() -> None:
    """What is not finite is an input error, not a traceback."""
    with pytest.raises(InputError, match=r"^cost: demanded finite"):
        energy_kwh(Decimal("Infinity"), Decimal(HOUR), Decimal(1))
