"""One figure of a plan by its key path: read, replaced, judged again."""

from __future__ import annotations

from decimal import Decimal

import pytest

from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.price_fields import value_at, with_value
from price_plans import owned, plan, rented

GPU = {"label": "GPU", "amount": Decimal("0.70")}
YEAR = {"term_months": Decimal(12), "payment": "no-upfront", "hourly": Decimal(1)}
SPOT = plan(
    plan="spot",
    amount=Decimal("0.06"),
    components=[GPU, {"label": "Skylake", "percent": Decimal("6.07"), "of": ["compute"]}],
    start={"seconds": Decimal(60)},
    interruptions={"rate_per_hour": Decimal("0.05")},
    maximum_lifetime_seconds=Decimal(86_400),
    credit={"amount": Decimal(300)},
)


@pytest.mark.parametrize(
    ("price", "path"),
    [
        (SPOT, "amount"),
        (SPOT, "components[0].amount"),
        (SPOT, "components[1].percent"),
        (SPOT, "start.failure_probability"),
        (SPOT, "interruptions.rate_per_hour"),
        (SPOT, "maximum_lifetime_seconds"),
        (SPOT, "credit.amount"),
        (SPOT, "billing.minimum_seconds"),
        (owned(), "owned.utilisation"),
        (owned(), "owned.electricity_per_kwh"),
        (plan(plan="reserved", commitment=YEAR), "commitment.utilisation"),
    ],
)
def test_every_figure_can_be_replaced(price: Price, path: str) -> None:
    """The new plan has the new figure and nothing else that is new; the old one stays."""
    before = value_at(price, path)
    after = (before + 1) / 2 if before else Decimal("0.5")
    changed = with_value(price, path, after)
    assert value_at(changed, path) == after
    assert value_at(price, path) == before
    assert with_value(changed, path, before).billing_rule == price.billing_rule
    if not path.startswith("billing"):
        assert with_value(changed, path, before) == price


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("owned.utilisaton", 'a key of this spec, got "owned.utilisaton"; did you mean "util'),
        ("source", 'the key of a number that this spec gives, got "source"'),
        ("amount", 'the key of a number that this spec gives, got "amount"'),
        ("components[0].amount", 'of a number that this spec gives, got "components.amount"'),
        ("owned", 'the key of a number that this spec gives, got "owned"'),
        ("owned..utilisation", "a key path, such as"),
        ("", "a key path, such as"),
    ],
)
def test_paths_to_no_figure(path: str, message: str) -> None:
    """A key that is none, or whose value is no number, is said."""
    with pytest.raises(InputError, match=r"^bought: ") as caught:
        with_value(owned(), path, Decimal(1))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("price", "path", "value", "message"),
    [
        (owned(), "owned.utilisation", "2", "owned.utilisation: should be at most 1, got 2"),
        (owned(), "owned.residual", "101", "owned: should have residual at most purchase"),
        (rented(), "amount", "-1", "amount: should be greater than 0, got -1"),
        (rented(), "amount", "NaN", "amount: should be a finite number, got nan"),
        (SPOT, "start.seconds", "86400", "maximum_lifetime_seconds: should be longer than"),
    ],
)
def test_figures_are_judged_as_in_a_spec(price: Price, path: str, value: str, message: str) -> None:
    """A value that no spec may hold is refused in the words of a spec's fault."""
    with pytest.raises(InputError) as caught:
        with_value(price, path, Decimal(value))
    assert str(caught.value).startswith(f"{price.id}: {message}")


def test_what_keeps_a_price_from_being_the_answer() -> None:
    """An assumption, a spot plan without a rate, a commitment; nothing does on demand."""
    term = {"term_months": Decimal(12), "payment": "no-upfront", "hourly": Decimal("0.5")}
    committed = plan(plan="committed-use", commitment=term)
    assert rented().reservation == ""
    assert owned().reservation == "not a market price"
    spot = plan(plan="spot", amount=Decimal("0.1"))
    assert spot.reservation == "not known how often it is interrupted"
    assert committed.reservation == "paid for its whole term, used or not"
    assert (committed.plan_words, rented().plan_words) == ("committed-use, 12 months", "on-demand")
