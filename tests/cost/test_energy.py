"""Energy and emissions, by the assumptions of a source."""

from __future__ import annotations

from decimal import Decimal

import pytest

from epochcost.cost.energy import (
    Power,
    UnknownEnergy,
    declared_power,
    energy_use,
)
from epochcost.specs.hardware import Accelerator, Hardware
from epochcost.specs.reference_data import Grid
from price_plans import owned

HOUR = 3600


GRID = Grid(id="here", name="Here", kg_co2e_per_kwh=Decimal("0.5"), year=2023, source="a test")


def test_energy_is_power_times_time() -> None:
    """720 watts for 10,000 seconds are 2 kWh."""
    assert energy_use(Power(Decimal(720), ""), Decimal(10_000), GRID).machines_kwh == 2


def test_the_building_takes_its_share() -> None:
    """A declared PUE is used before the grid's PUE, and the grid's before none."""
    grid = GRID.model_copy(update={"pue": Decimal("1.58")})
    power = Power(Decimal(1000), "")
    assert energy_use(power, Decimal(HOUR), grid).kg_co2e == Decimal("1.58") / 2
    assert energy_use(power, Decimal(HOUR), grid, Decimal(2)).kg_co2e == 1


@pytest.mark.parametrize(
    ("watts", "hours", "pounds"),
    [("1415.78", 12, 26), ("1515.43", 274_120, 626_155), ("517.66", 336, 262)],
)
def test_rows_of_strubell(watts: str, hours: int, pounds: int) -> None:
    """Emissions of Transformer base, the architecture search and ELMo equal the paper's."""
    grid = GRID.model_copy(
        update={"kg_co2e_per_kwh": Decimal("0.43272712098"), "pue": Decimal("1.58")}
    )
    use = energy_use(Power(Decimal(watts), ""), Decimal(hours * HOUR), grid)
    assert round(use.kg_co2e / Decimal("0.45359237")) == pounds


def _machine(host_watts: int | None, *gpu_watts: int | None) -> Hardware:
    gpus = [
        Accelerator(
            name=f"GPU {at}", count=2, power_watts=None if watts is None else Decimal(watts)
        )
        for at, watts in enumerate(gpu_watts)
    ]
    return Hardware(
        id="box",
        name="Box",
        provider="here",
        busy_watts=None if host_watts is None else Decimal(host_watts),
        accelerators=tuple(gpus),
        source="a test",
    )


def test_the_power_of_a_machine_by_its_spec() -> None:
    """If the host's power is unknown, the power covers the accelerators alone."""
    whole, alone = declared_power(_machine(500, 300)), declared_power(_machine(None, 300))
    assert isinstance(whole, Power)
    assert isinstance(alone, Power)
    assert (whole.watts, alone.watts) == (1100, 600)
    assert "the accelerators of box alone" in alone.phrase


@pytest.mark.parametrize("machine", [_machine(None), _machine(500, None), _machine(500, 300, None)])
def test_unknown_power_is_a_state(machine: Hardware) -> None:
    """A machine with a part of unknown power has a reason instead of a number."""
    found = declared_power(machine)
    assert isinstance(found, UnknownEnergy)
    assert "not known" in found.reason


def test_the_power_of_an_owned_machine() -> None:
    """A plan per vCPU multiplies its power by the vCPUs, whose number must be known."""
    plan = owned(per_vcpu=True)
    eight = declared_power(_machine(None), plan, 8)
    assert isinstance(eight, Power)
    assert eight.watts == 80
    assert isinstance(declared_power(_machine(None), plan), UnknownEnergy)
