"""Published figures come out of the engine at the precision that their sources print."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.cost import ClaimCheck, recompute
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.published import Published
from price_plans import DATE, rented

ROOT = Path(__file__).parents[2]
BILL = {"name": "bill", "epochs": 1}


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """The project's own specs."""
    return load_catalogue(ROOT)


def source(*rows: dict[str, Any], claims: tuple[dict[str, Any], ...] = ()) -> Published:
    """A published table of rows on one machine."""
    return Published.model_validate(
        {
            "id": "paper",
            "title": "A paper",
            "authors": "An author",
            "year": 2016,
            "workload": "training",
            "source": "a journal",
            "as_of": DATE,
            "timings": rows,
            "claims": claims,
        }
    )


def row(identifier: str = "row", **fields: Any) -> dict[str, Any]:
    """A row of 25 epochs; 170 s at $0.90 an hour make 4.25 cents."""
    timed = {"seconds_per_epoch": 170} if not {"seconds", "hours"} & set(fields) else {}
    machine = {"id": identifier, "hardware": "p2.xlarge", "price": "p2.xlarge-on-demand"}
    return {**machine, "batch_size": 100, "epochs": 25, **timed, **fields}


def claim(printed: str, unit: str, formula: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """One figure of a source."""
    return {"label": "figure", "printed": printed, "unit": unit, "formula": formula, **fields}


def checked(*rows: dict[str, Any], currency: str = "USD") -> ClaimCheck:
    """The check of the last row's only claim."""
    price = rented(currency=currency)
    return recompute(source(*rows), {price.id: price})[-1].checks[0]


def test_kroutikovs_table(catalogue: Catalogue) -> None:
    """His cents per epoch, and what one epoch alone would have cost by the whole hour."""
    checks = {
        (row.timing.id, check.claim.label): (check.claim.value, check.claim.unit, check.equal)
        for row in recompute(catalogue.published["kroutikov-2016"], catalogue.prices)
        for check in row.checks
        if row.timing
    }
    expected = {
        "c4.8xlarge": ("65", "1.675"),
        "g2.2xlarge": ("68", "1.30"),
        "p2.xlarge": ("11", "0.90"),
        "p2.xlarge-batch-100": ("4.3", "0.90"),
    }
    for name, (cents, dollars) in expected.items():
        assert checks[name, "one epoch"] == (Decimal(cents), "US cents", True)
        assert checks[name, "one epoch alone"] == (Decimal(dollars), "USD", True)


def test_halves_round_up_as_print_does() -> None:
    """4.25 cents are printed as 4.3."""
    check = checked(row(claims=[claim("4.3", "US cents", BILL)]))
    assert check.figure is not None
    assert (check.figure.exact, check.ours) == (Decimal("4.25"), Decimal("4.3"))
    assert check.agreement == "equal"


@pytest.mark.parametrize("printed", ["4.1", "4.5", "5", "4.27"])
def test_another_figure_is_not_equal(printed: str) -> None:
    """A claim that no rounding of the time explains is told apart."""
    check = checked(row(claims=[claim(printed, "US cents", BILL)]))
    assert (check.equal, check.agreement) == (False, "differs")


def test_a_rounded_time_explains_a_difference() -> None:
    """0.49 h may have been 0.4935 h, which makes 44.4 cents and not 44.1; never 45."""
    explained = row(hours=Decimal("0.49"), claims=[claim("44.4", "US cents", {"name": "bill"})])
    assert checked(explained).agreement == "within rounding"
    wrong = row(hours=Decimal("0.49"), claims=[claim("45.1", "US cents", {"name": "bill"})])
    assert checked(wrong).agreement == "differs"


@pytest.mark.parametrize(
    ("formula", "unit", "expected"),
    [
        ({"name": "bill"}, "USD", "2.125"),
        ({"name": "bill", "billing": "whole-hour"}, "USD", "3.6"),
        ({"name": "bill", "epochs": 1}, "thousand USD", "0.000085"),
        ({"name": "duration", "epochs": 1}, "seconds", "170"),
        ({"name": "duration"}, "hours", "1.180555556"),
        ({"name": "step-time"}, "seconds", "0.641509434"),
        ({"name": "examples"}, "million examples", "0.6625"),
        ({"name": "rate-drop", "epochs": 2, "examples_per_epoch": 950}, "steps", "18"),
        (
            {"name": "steps-over-rate-drop", "epochs": 2, "examples_per_epoch": 950},
            "ratio",
            "368.055555556",
        ),
        ({"name": "energy", "assumptions": "strubell-2019"}, "kWh", "0.932638889"),
        ({"name": "emissions", "assumptions": "strubell-2019"}, "lb CO2e", "0.8897375"),
        ({"name": "relative-time", "to": "other"}, "ratio", "0.425"),
        ({"name": "relative-cost", "to": "other"}, "percent", "85"),
        ({"name": "speed-up", "to": "other"}, "ratio", "2.352941176"),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else None,
)
def test_each_formula(formula: dict[str, Any], unit: str, expected: str) -> None:
    """Worked out by hand for two machines, 25 epochs of 170 s and 265 steps, and 500 W."""
    other = row("other", seconds=10_000)
    mine = row(count=2, steps_per_epoch=265, power_watts=500, claims=[claim("1", unit, formula)])
    found = checked(other, mine).figure
    assert found is not None
    assert round(found.exact, 9) == round(Decimal(expected), 9)


def test_a_product_needs_no_row() -> None:
    """Two configurations of ten runs each."""
    factors = [{"label": "one run", "value": Decimal("2.5")}, {"label": "runs", "value": 20}]
    product = {
        "name": "product",
        "factors": factors,
        "divisors": [{"label": "halves", "value": 2}],
    }
    (only,) = recompute(source(claims=(claim("25", "thousand USD", product),)), {})
    assert only.timing is None
    assert [check.agreement for check in only.checks] == ["equal"]


def test_thousands_are_separated_as_printed() -> None:
    """12,571 is a number of five digits."""
    check = checked(row(seconds=50_284_000, claims=[claim("12,571", "USD", {"name": "bill"})]))
    assert (check.claim.value, check.agreement) == (Decimal(12571), "equal")


def test_more_than_a_bound() -> None:
    """A source that says "more than" is right above its figure and at it, and wrong below."""
    outcomes = [
        checked(row(claims=[claim(printed, "US cents", BILL, relation="at-least")])).equal
        for printed in ("4.2", "4.3", "4.4")
    ]
    assert outcomes == [True, True, False]


def test_what_cannot_be_recomputed_says_why() -> None:
    """Another currency, a row without an input, a figure without a formula: states, not errors."""
    foreign = checked(row(claims=[claim("1", "USD", BILL)]), currency="EUR")
    powerless = checked(
        row(claims=[claim("1", "kWh", {"name": "energy", "assumptions": "strubell-2019"})])
    )
    silent = checked(row(claims=[claim("1", "USD", {"name": "not-given"})]))
    assert [one.agreement for one in (foreign, powerless, silent)] == ["not recomputed"] * 3
    assert foreign.problem == "row: expected a price in USD, got p2.xlarge-on-demand in EUR"
    assert powerless.problem == "row: expected power_watts, got a row without"
    assert silent.ours is None


@given(st.decimals("0.01", 1000, places=2), st.decimals("-0.0049", "0.0049", places=4))
def test_the_true_time_is_never_called_different(hours: Decimal, hidden: Decimal) -> None:
    """A source that bills its exact time and prints it rounded is equal or within rounding."""
    cost = f"{(hours + hidden) * Decimal('0.90'):.3f}"
    check = checked(row(hours=hours, claims=[claim(cost, "USD", {"name": "bill"})]))
    assert check.agreement in {"equal", "within rounding"}
