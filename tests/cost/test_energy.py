"""Energy and emissions by the assumptions of a source."""

from __future__ import annotations

from decimal import Decimal

import pytest

from epochcost.cost.energy import (
    STRUBELL_2019,
    DeclaredPower,
    EnergyReading,
    UnknownEnergy,
    declared_power,
    emissions_pounds,
    energy_kwh,
    energy_use,
    owned_power,
)
from epochcost.errors import InputError
from epochcost.specs.hardware import Accelerator, Hardware
from epochcost.specs.reference_data import Grid
from price_plans import owned

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


GRID = Grid(id="here", name="Here", kg_co2e_per_kwh=Decimal("0.5"), year=2023, source="a test")


def test_what_a_meter_read_is_said_to_be_measured() -> None:
    """7.2 megajoules are 2 kWh, however long the machines took."""
    for seconds in (1, 10_000):
        found = energy_use(EnergyReading(Decimal(7_200_000), "NVML"), Decimal(seconds), GRID)
        assert found.machines_kwh == 2
    assert found.power.phrase == "measured by NVML"


def test_the_building_takes_its_share() -> None:
    """A declared PUE before the grid's, the grid's before none."""
    grid = GRID.model_copy(update={"pue": Decimal("1.58")})
    power = DeclaredPower(Decimal(1000))
    assert energy_use(power, Decimal(HOUR), grid).building_kwh == Decimal("1.58")
    assert energy_use(power, Decimal(HOUR), grid, Decimal(2)).building_kwh == 2


def test_agrees_with_the_published_preset() -> None:
    """The grid of specs that Strubell counted with gives the pounds of the preset."""
    grid = GRID.model_copy(
        update={"kg_co2e_per_kwh": Decimal("0.43272712098"), "pue": Decimal("1.58")}
    )
    found = energy_use(DeclaredPower(Decimal("1415.78")), Decimal(12 * HOUR), grid)
    kwh = energy_kwh(Decimal("1415.78"), Decimal(12 * HOUR), STRUBELL_2019.pue)
    assert found.building_kwh == kwh
    pounds = found.kg_co2e / Decimal("0.45359237")
    assert abs(pounds - emissions_pounds(kwh, STRUBELL_2019.pounds_per_kwh)) < 1e-12


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
    """The host and all accelerators; the accelerators alone where the host says nothing."""
    whole, alone = declared_power(_machine(500, 300)), declared_power(_machine(None, 300))
    assert isinstance(whole, DeclaredPower)
    assert isinstance(alone, DeclaredPower)
    assert (whole.watts, alone.watts) == (1100, 600)
    assert "the accelerators of box alone" in alone.phrase


@pytest.mark.parametrize("machine", [_machine(None), _machine(500, None), _machine(500, 300, None)])
def test_unknown_power_is_a_state(machine: Hardware) -> None:
    """A part without a power gives a reason and no zero."""
    found = declared_power(machine)
    assert isinstance(found, UnknownEnergy)
    assert "not known" in found.reason


def test_the_power_of_an_owned_machine() -> None:
    """The plan's power, times the vCPUs if it is per vCPU; without their number unknown."""
    plan = owned(per_vcpu=True).owned
    assert plan is not None
    eight = owned_power(plan, 8)
    assert isinstance(eight, DeclaredPower)
    assert eight.watts == 80
    assert isinstance(owned_power(plan, None), UnknownEnergy)


@pytest.mark.parametrize("value", ["0", "-1", "NaN", "Infinity"])
def test_impossible_energies(value: str) -> None:
    """Each is one line that names what is wrong."""
    number = Decimal(value)
    with pytest.raises(InputError, match=r"^power: expected watts above 0"):
        DeclaredPower(number)
    with pytest.raises(InputError, match=r"^energy: expected joules above 0"):
        EnergyReading(number, "a meter")
    with pytest.raises(InputError, match=r"^PUE: expected at least 1"):
        energy_use(DeclaredPower(Decimal(1)), Decimal(1), GRID, number)
