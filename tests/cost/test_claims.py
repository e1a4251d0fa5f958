"""The engine computes published figures at the precision that their sources print."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from epochcost.cost.claims import ClaimCheck, recompute
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.published import Published
from price_plans import DATE, rented

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """The project's own specs."""
    return load_catalogue(ROOT)


def source(page: str, *rows: dict[str, Any]) -> Published:
    """A table of rows on one machine, on the page of a source."""
    return Published.model_validate(
        {
            "id": "paper",
            "source_id": page,
            "title": "A paper",
            "authors": "An author",
            "year": 2016,
            "workload": "training",
            "source": "a journal",
            "as_of": DATE,
            "timings": rows,
        }
    )


def row(identifier: str = "row", **fields: Any) -> dict[str, Any]:
    """A row of 25 epochs. An epoch of 170 s at $0.90 an hour costs 4.25 cents."""
    timed = {"seconds_per_epoch": 170} if not {"seconds", "hours"} & set(fields) else {}
    machine = {"id": identifier, "hardware": "p2.xlarge", "price": "p2.xlarge-on-demand"}
    return {**machine, "batch_size": 100, "epochs": 25, **timed, **fields}


def claim(
    printed: str, unit: str = "US cents", label: str = "one epoch", **fields: Any
) -> dict[str, Any]:
    """A claimed figure of a source; by default Kroutikov's cost of an epoch."""
    return {"label": label, "printed": printed, "unit": unit, **fields}


def checked(
    *rows: dict[str, Any], page: str = "kroutikov-2016", currency: str = "USD"
) -> ClaimCheck:
    """The check of the last row's only claim."""
    price = rented(currency=currency)
    return recompute(source(page, *rows), {price.id: price})[-1].checks[0]


def test_kroutikovs_table(catalogue: Catalogue) -> None:
    """The cents per epoch in his table, and the cost of one epoch alone in whole hours."""
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


def test_a_rounded_time_explains_a_difference() -> None:
    """A time printed as 0.49 h may be 0.4935 h, which explains 44.4 cents, but never 45.1."""
    explained = row(hours=Decimal("0.49"), claims=[claim("44.4", label="25 epochs, prorated")])
    assert checked(explained).agreement == "within rounding"
    wrong = row(hours=Decimal("0.49"), claims=[claim("45.1", label="25 epochs, prorated")])
    assert checked(wrong).agreement == "differs"


@pytest.mark.parametrize(
    ("page", "label", "unit", "expected"),
    [
        ("kroutikov-2016", "25 epochs, prorated", "USD", "2.125"),
        ("kroutikov-2016", "25 epochs", "USD", "3.6"),
        ("kroutikov-2016", "one epoch", "thousand USD", "0.000085"),
        ("kroutikov-2016", "25 epochs take", "hours", "1.180555556"),
        ("kroutikov-2016", "one batch", "seconds", "0.641509434"),
        ("malta-2019", "images seen", "million examples", "0.6625"),
        ("malta-2019", "first rate drop", "steps", "36900"),
        ("malta-2019", "stabilised / first drop", "ratio", "0.179539295"),
        ("malta-2019", "speed-up over p2", "ratio", "2.352941176"),
        ("strubell-2019", "energy", "kWh", "0.932638889"),
        ("strubell-2019", "emissions", "lb CO2e", "0.8897375"),
        ("strubell-2019", "cost, low", "USD", "2.125"),
        ("woolf-2017", "time, GPU = 1", "ratio", "0.425"),
        ("woolf-2017", "cost, GPU = 1", "percent", "85"),
    ],
)
def test_each_formula(page: str, label: str, unit: str, expected: str) -> None:
    """Each formula gives the result computed by hand for one row of two machines."""
    others = [row(name, seconds=10_000) for name in ("gpu", "p2.xlarge-batch-100")]
    figure = claim("1", unit, label, price="p2.xlarge-on-demand" if "low" in label else None)
    mine = row(count=2, steps_per_epoch=265, power_watts=500, claims=[figure])
    found = checked(*others, mine, page=page).figure
    assert found is not None
    assert round(found.exact, 9) == round(Decimal(expected), 9)


def test_figures_of_no_row(catalogue: Catalogue) -> None:
    """Figures without a row are computed from constants. A total without inputs is not computed."""
    (loose,) = recompute(catalogue.published["ai21-2020"], catalogue.prices)
    figures = [check.figure and round(check.figure.exact, 2) for check in loose.checks]
    assert loose.timing is None
    assert figures == [50, 200, Decimal("1.6"), Decimal("4.47"), None]


def test_a_source_without_a_function_is_not_recomputed() -> None:
    """The figures of a source without formulas are marked as not recomputed."""
    check = checked(row(claims=[claim("4.3")]), page="another-2026")
    assert (check.agreement, check.our_digits) == ("not recomputed", "—")
    assert check.problem == "the source does not give its inputs"


def test_more_than_a_bound() -> None:
    """A claim of "more than" a figure holds if the result is at or above the figure."""
    outcomes = [
        checked(row(claims=[claim(printed, relation="at-least")])).equal
        for printed in ("4.2", "4.3", "4.4")
    ]
    assert outcomes == [True, True, False]


def test_what_cannot_be_recomputed_says_why() -> None:
    """Another currency, missing power, steps or rows and an unknown label give a reason each."""
    foreign = checked(row(claims=[claim("1", "USD")]), currency="EUR")
    powerless = checked(row(claims=[claim("1", "kWh", "energy")]), page="strubell-2019")
    stepless = checked(row(claims=[claim("1", "seconds", "one batch")]))
    silent = checked(row(claims=[claim("1", "USD", "of nothing")]))
    lone = checked(row(claims=[claim("1", "ratio", "speed-up over p2")]), page="malta-2019")
    other = checked(row(claims=[claim("1", "ratio", "time, GPU = 1")]), page="woolf-2017")
    checks = (foreign, powerless, stepless, silent, lone, other)
    assert [one.agreement for one in checks] == ["not recomputed"] * 6
    assert "p2.xlarge-batch-100: expected a row with this id" in str(lone.problem)
    assert "gpu: expected a row with this id" in str(other.problem)
    assert foreign.problem == "row: expected a price in USD, got p2.xlarge-on-demand in EUR"
    assert powerless.problem == "row: expected power_watts, got a row without"
    assert stepless.problem == "row: expected steps, got a row without"
    assert silent.ours is None


def test_outcomes_have_signs() -> None:
    """Outcomes have distinct signs, and the engine's figures up to two digits more than printed."""
    equal = checked(row(claims=[claim("4.3")]))
    more = checked(row(claims=[claim("4", relation="at-least")]))
    apart = checked(row(claims=[claim("4.9")]))
    assert [check.outcome for check in (equal, more, apart)] == [
        *("= matches", "≥ more", "≠ differs")
    ]
    assert (equal.our_digits, more.our_digits) == ("4.25", "4.25")
