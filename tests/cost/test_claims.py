"""Published costs come out of the engine at the precision that their sources print."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from epochcost.cost import recompute
from epochcost.errors import InputError
from epochcost.specs.catalogue import Catalogue
from epochcost.specs.loader import load_catalogue
from epochcost.specs.published import Claim, Timing
from price_plans import rented

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    """The project's own specs."""
    return load_catalogue(ROOT)


def timing(printed: str, seconds: str = "170", price: str = "p2.xlarge-on-demand") -> Timing:
    """A row with one claim in cents: 170 s at $0.90 make 4.25."""
    claim = Claim(label="one epoch", printed=printed, unit="US cents")
    return Timing(
        id="row",
        hardware="p2.xlarge",
        price=price,
        batch_size=100,
        seconds_per_epoch=Decimal(seconds),
        epochs=25,
        claims=(claim,),
    )


def test_kroutikovs_table(catalogue: Catalogue) -> None:
    """His cents per epoch, and what one epoch alone would have cost by the whole hour."""
    rows = {
        row.id: [
            (check.printed, check.claim.unit, check.equal)
            for check in recompute(row, catalogue.price(row.price))
        ]
        for row in catalogue.published["kroutikov-2016"].timings
    }
    expected = {
        "c4.8xlarge": ("65", "1.675"),
        "g2.2xlarge": ("68", "1.30"),
        "p2.xlarge": ("11", "0.90"),
        "p2.xlarge-batch-100": ("4.3", "0.90"),
    }
    assert rows == {
        row: [(Decimal(cents), "US cents", True), (Decimal(dollars), "USD", True)]
        for row, (cents, dollars) in expected.items()
    }


def test_halves_round_up_as_print_does() -> None:
    """4.25 cents are printed as 4.3."""
    (check,) = recompute(timing("4.3"), rented())
    assert (check.exact, check.ours, check.equal) == (Decimal("4.25"), Decimal("4.3"), True)


@pytest.mark.parametrize("printed", ["4.2", "4.4", "5", "4.26"])
def test_another_figure_is_not_equal(printed: str) -> None:
    """A claim that is off by one of its last digits is told apart."""
    (check,) = recompute(timing(printed), rented())
    assert not check.equal


def test_the_price_must_be_the_rows() -> None:
    """Another plan, or another currency, is refused instead of compared."""
    with pytest.raises(InputError, match=r"^row: demanded its price"):
        recompute(timing("4.3", price="another"), rented())
    with pytest.raises(InputError, match=r"in EUR$"):
        recompute(timing("4.3"), rented(currency="EUR"))
