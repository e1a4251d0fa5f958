"""From the catalogue to a target and back: the cheapest machine, its price as paid, its start."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
import tomli

from epochcost.errors import InputError
from epochcost.fleet.ledger import Tariff
from epochcost.fleet.offers import cheapest_target, form_of, proposed_price
from epochcost.fleet.sky import SkyEngine
from epochcost.fleet.station import Station
from epochcost.specs.catalogue import Catalogue, current_prices
from epochcost.specs.loader import load_catalogue
from epochcost.specs.price import Price
from epochcost.specs.target import Sky, Target

ROOT = Path(__file__).parents[2]
L4 = "g6.xlarge-on-demand-2026-07"


@pytest.fixture(scope="module", name="catalogue")
def catalogue_fixture() -> Catalogue:
    """Our own machines and prices, without targets."""
    return replace(load_catalogue(ROOT), targets={})


def test_cheapest_target_has_the_lowest_price_of_an_hour(catalogue: Catalogue) -> None:
    """The target names the machine as SkyPilot does; no other machine with an L4 costs less."""
    target = cheapest_target(catalogue, "l4")
    assert isinstance(target.engine, Sky)
    price = catalogue.price(target.price)
    assert target.engine.instance_type == target.hardware
    assert target.engine.infra.startswith(("aws/", "gcp/"))
    amounts = [
        each.amount
        for each in current_prices(catalogue.prices.values())
        if each.hardware.startswith(("g6.", "g2-standard")) and each.plan in ("on-demand", "spot")
    ]
    assert price.amount == min(filter(None, amounts))


def test_cheapest_target_is_not_the_one_with_a_smaller_number_of_another_currency(
    catalogue: Catalogue,
) -> None:
    """A price in euros does not count, although its amount is below the lowest one in dollars."""
    cheapest = cheapest_target(catalogue, "l4")
    price = catalogue.price(L4)
    assert price.amount is not None
    euros = price.model_copy(update={"currency": "EUR", "amount": price.amount / 100})
    changed = replace(catalogue, prices={**catalogue.prices, L4: euros})
    assert cheapest_target(changed, "l4") == cheapest


def test_unknown_accelerator_is_refused(catalogue: Catalogue) -> None:
    """An L40S is no L4, and an accelerator that no machine has is an error with a similar name."""
    assert "g6e" in cheapest_target(catalogue, "L40S").hardware
    for wrong, near in {
        "L44": "L4",
        "H10O": "H100",
        "A100 SXM (80 GB)": "A100 SXM4 (80 GB)",
    }.items():
        with pytest.raises(InputError) as refused:
            cheapest_target(catalogue, wrong)
        assert f"--accelerator {wrong}: expected an accelerator" in str(refused.value)
        assert str(refused.value).endswith(f'did you mean "{near}"?')


def test_an_empty_name_is_no_accelerator(catalogue: Catalogue) -> None:
    """An unset variable of a script rents no machine."""
    with pytest.raises(InputError, match="--accelerator : expected an accelerator of a machine"):
        cheapest_target(catalogue, "")


@pytest.mark.parametrize(
    ("accelerator", "form", "sky"),
    [
        ("H100 SXM5", "H100 SXM5", "H100:"),
        ("a100 sxm4 (80 gb)", "A100 SXM4 (80 GB)", "A100-80GB:"),
        ("H100", "H100 PCIe", "H100:1"),
        ("Tesla T4", "Tesla T4", "T4:1"),
        ("A6000", "RTX A6000", "A6000:1"),
    ],
)
def test_a_form_or_a_chip_is_named(
    catalogue: Catalogue, accelerator: str, form: str, sky: str
) -> None:
    """The name of a form takes that form; the name of a chip takes its cheapest form."""
    target = cheapest_target(catalogue, accelerator)
    assert form_of(catalogue, target) == form
    assert isinstance(target.engine, Sky)
    assert str(target.engine.accelerators).startswith(sky)


def _station(catalogue: Catalogue, quote: Decimal | None, *starts: float) -> Station:
    machine = Sky(name="sky", infra="aws/us-east-1", instance_type="g6.xlarge")
    target = Target(id="l4", engine=machine, hardware="g6.xlarge", price=L4)
    engine = SkyEngine(Tariff.of(catalogue, target).quoted(quote), Path(), Path())
    return Station("l4", None, engine, startup_seconds=list(starts))  # type: ignore[arg-type]


def test_price_paid_and_start_become_a_price_spec(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proposal is the price's spec with today's amount, and the median start."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1795651200")
    station = _station(catalogue, Decimal("0.91"), 100, 140.4, 300)
    proposed = proposed_price(catalogue, station)
    assert proposed is not None
    identifier, text = proposed
    spec = tomli.loads(text, parse_float=Decimal)
    assert (spec["id"], spec["amount"], spec["as_of"]) == (
        identifier,
        Decimal("0.91"),
        dt.date(2026, 11, 26),
    )
    assert spec["start"] == {"seconds": 140}
    assert spec["source"] == "paid by a launch on 2026-11-26 through sky"
    assert spec["hardware"] == "g6.xlarge"


def test_a_start_in_one_line_gets_the_measured_time(catalogue: Catalogue, tmp_path: Path) -> None:
    """A spec may declare its start as a table in one line."""
    text = catalogue.files[f"prices/{L4}"].read_text("utf-8")
    path = tmp_path / "price.toml"
    path.write_text(f"start = {{ seconds = 9 }}\n{text.partition('[start]')[0]}")
    spec = Price.model_validate(tomli.loads(path.read_text(), parse_float=Decimal))
    changed = replace(
        catalogue,
        prices={**catalogue.prices, L4: spec},
        files={**catalogue.files, f"prices/{L4}": path},
    )
    proposed = proposed_price(changed, _station(changed, None, 100))
    assert proposed is not None
    assert tomli.loads(proposed[1])["start"]["seconds"] == 100


def test_a_price_that_is_as_declared_is_not_proposed(catalogue: Catalogue) -> None:
    """Without another amount and without a measured start, nothing is new."""
    amount = catalogue.price(L4).amount
    assert proposed_price(catalogue, _station(catalogue, amount)) is None
    assert proposed_price(catalogue, _station(catalogue, None)) is None


def test_a_quote_above_the_spec_is_reserved(catalogue: Catalogue) -> None:
    """Money is reserved at the price that the engine quotes, not at an older, lower price."""
    dear = _station(catalogue, Decimal("8.048")).engine.tariff
    assert round(dear.most(), 9) == round(10 * _station(catalogue, None).engine.tariff.most(), 9)
