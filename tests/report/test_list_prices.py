"""The price of an hour of a machine."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from epochcost.report.list_prices import Listed, hourly, most_rented
from epochcost.specs.hardware import Accelerator, Hardware
from epochcost.specs.price import Price
from price_plans import owned


def test_an_hour_beyond_all_money_is_unknown() -> None:
    """An hourly price beyond the largest allowed amount is unknown."""
    plan = owned(utilisation="1e-15", years="1e-15")
    assert plan.owned is not None
    dear = plan.owned.model_copy(update={"purchase": Decimal(10**15)})
    plan = Price.model_validate({**dict(plan), "owned": dear})
    assert hourly(plan) is None
    assert hourly(plan, vcpus=1) is None
    assert hourly(owned()) == hourly(owned(), vcpus=1)
    assert hourly(owned(per_vcpu=True)) is None


def _machine(identifier: str, provider: str, gpu: str, capability: str, hour: int) -> Listed:
    chip = Accelerator(name=gpu, compute_capability=capability)
    hardware = Hardware(
        id=identifier, name=identifier, provider=provider, source="a test", accelerators=(chip,)
    )
    return Listed(hardware, Decimal(hour), dt.date(2026, 7, 1))


def test_most_rented_counts_providers() -> None:
    """GPUs of most providers are kept, then newer GPUs; each at its cheapest, dearest first."""
    machines = [
        _machine("a", "X", "old", "7.0", 1),
        _machine("b", "X", "common", "7.5", 2),
        _machine("c", "Y", "common", "7.5", 3),
        _machine("d", "X", "new", "9.0", 9),
        _machine("e", "X", "new", "9.0", 8),
    ]
    kept = most_rented(machines, 2)
    assert [machine.hardware.id for machine in kept] == ["e", "b"]
    assert len(most_rented(machines, 9)) == 3
