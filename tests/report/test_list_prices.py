"""The price of an hour of a machine."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from epochcost.report.list_prices import (
    Listed,
    hourly,
    list_prices,
    most_rented,
    moved_prices,
    past_prices,
)
from epochcost.report.site import build
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.hardware import Accelerator, Hardware
from epochcost.specs.loader import load_catalogue
from epochcost.specs.price import Price
from price_plans import owned
from report_project import REPOSITORY, inputs_of, write_project


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


def test_a_price_read_again_keeps_its_change() -> None:
    """A change from 10 to 5 stays listed if later prices of the plan are 5 as well."""
    machine = _machine("box", "Cloud", "chip", "8.0", 5).hardware
    days = [(dt.date(2026, month, 1), amount) for month, amount in ((1, 10), (3, 5), (6, 5))]
    prices = [
        Price.model_validate(
            {
                "id": f"box-{day:%Y-%m}",
                "hardware": "box",
                "plan": "on-demand",
                "provider": "Cloud",
                "amount": amount,
                "currency": "USD",
                "billing": "per-second",
                "as_of": day,
                "source": "made up for a test",
            }
        )
        for day, amount in days
    ]
    catalogue: Any = SimpleNamespace(hardware={"box": machine}, prices_of=lambda _: prices)
    (moved,) = moved_prices(catalogue)
    assert (moved.since, moved.price.as_of, moved.change) == (
        days[0][0],
        days[1][0],
        Decimal("-0.5"),
    )
    steady: Any = SimpleNamespace(hardware={"box": machine}, prices_of=lambda _: prices[1:])
    assert moved_prices(steady) == []


_PLAN = """
hardware = "box"
plan = "on-demand"
provider = "Cloud"
currency = "EUR"
source = "made up for a test"
"""


def _catalogue_of(project: Path, plans: Sequence[tuple[str, int, int]]) -> Catalogue:
    """Specs of a project with these plans only: region, year and amount."""
    for folder in ("prices", "published"):
        for path in (project / "specs" / folder).glob("*.toml"):
            path.unlink()
    for region, year, amount in plans:
        name = f"{region}-{year}"
        text = (
            f"id = '{name}'\nregion = '{region}'\nas_of = {year}-07-01\namount = {amount}\n{_PLAN}"
        )
        (project / f"specs/prices/{name}.toml").write_text(text, encoding="utf-8")
    return load_catalogue(project)


def test_the_newest_of_equal_list_prices_is_shown(tmp_path: Path) -> None:
    """Two regions have the same price; the day of the newer one counts."""
    catalogue = _catalogue_of(write_project(tmp_path), [("a", 2025, 4), ("b", 2026, 4)])
    listed = list_prices(catalogue)["box"]
    assert (listed.hour, listed.as_of) == (Decimal(4), dt.date(2026, 7, 1))


def test_list_prices_are_in_the_usual_currency_at_the_cheapest_region(tmp_path: Path) -> None:
    """A project in euros has list prices, and the past prices are of the region listed."""
    project = write_project(tmp_path)
    plans = [("a", 2025, 7), ("a", 2026, 9), ("b", 2025, 5), ("b", 2026, 4)]
    catalogue = _catalogue_of(project, plans)
    listed = list_prices(catalogue)["box"]
    assert (listed.hour, listed.currency) == (Decimal(4), "EUR")
    past = past_prices(catalogue.prices_of("box"), listed.currency)
    assert past == [(dt.date(2025, 7, 1), 5), (dt.date(2026, 7, 1), 4)]
    site = build(inputs_of(project), REPOSITORY / "site_templates")
    assert "€4.00" in site.pages["machines/index.md"]
    assert "Was €5.00 on" in " ".join(site.pages["machines/box.md"].split())
    for page in ("machines/index.md", "models/index.md", "calculator.md"):
        assert "&#36;" not in site.pages[page]
