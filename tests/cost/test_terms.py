"""Properties of all plans: waste is never rewarded, and commitments never cost above list."""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import price_plans as plans
from epochcost.cost.bill import quote
from epochcost.cost.lines import Usage
from epochcost.specs.api import ApiPrice, LongPrompts
from epochcost.specs.price import Price
from epochcost.specs.terms import Commitment

# Sums of amounts that are each kept to 18 decimals.
ROUNDING = Decimal("1e-12")


def total(price: Price, seconds: Decimal, count: int = 1, runs: int = 1) -> Decimal:
    """The total of a plan's bill."""
    return quote(price, Usage(seconds, count=count, runs=runs)).total


@given(plans.rented_plans(), plans.job_seconds, st.integers(1, 40), st.integers(1, 40))
def test_more_machines_or_runs_never_cost_less(
    price: Price, seconds: Decimal, count: int, runs: int
) -> None:
    """No tier, discount or commitment makes the total fall when use grows."""
    bill = total(price, seconds, count, runs)
    assert bill <= total(price, seconds, count + 1, runs) + ROUNDING
    assert bill <= total(price, seconds, count, runs + 1) + ROUNDING


@given(plans.covering_commitments(), plans.rules, plans.job_seconds, st.integers(0, 30))
def test_a_commitment_used_fully_is_never_dearer_than_its_list(
    terms: Commitment, rule: object, seconds: Decimal, above: int
) -> None:
    """A fully used commitment and machines beyond it cost at most the price on demand."""
    assert terms.on_demand_hourly is not None
    fully = terms.model_copy(update={"utilisation": Decimal(1)})
    price = plans.plan(plan="savings-plan", commitment=fully, billing=rule)
    listed = plans.rented(terms.on_demand_hourly, price.billing_rule)
    count = math.ceil(terms.machines) + above
    assert total(price, seconds, count) <= total(listed, seconds, count) + ROUNDING


tokens = st.integers(1, 400_000)
per_million = plans.figures("0.1", "100", "0.01")


@st.composite
def api_prices(draw: st.DrawFn) -> ApiPrice:
    """Prices with long prompts, cached input and batches, as providers publish them."""
    read, write = draw(per_million), draw(per_million)
    cached = read * draw(plans.shares)
    dearer = 1 + draw(plans.shares)
    long = LongPrompts(
        above_tokens=draw(tokens),
        input_per_million=read * dearer,
        cached_input_per_million=cached * dearer,
        output_per_million=write * dearer,
    )
    return ApiPrice.model_validate(
        {
            "id": "api",
            "name": "api",
            "provider": "They",
            "input_per_million": read,
            "cached_input_per_million": cached,
            "output_per_million": write,
            "batch_percent": draw(plans.figures("0", "90", "1")),
            "long": long,
            "as_of": plans.DATE,
            "source": "a test",
        }
    )


@given(api_prices(), tokens, tokens, plans.shares, st.booleans())
def test_longer_prompts_never_cost_less(
    api: ApiPrice, prompt: int, more: int, cached: Decimal, batch: bool
) -> None:
    """A longer prompt never costs less, and caching or batches never add to the cost."""
    cost = api.request(prompt, 1000, cached, batch=batch)
    assert cost <= api.request(prompt + more, 1000, cached, batch=batch)
    assert cost <= api.request(prompt, 1000)


def test_terms_that_no_list_has_are_faults() -> None:
    """Cheaper long prompts, an end before the day, and commitments above on demand are faults."""
    spec = {"name": "api", "provider": "They", "input_per_million": 2, "output_per_million": 6}
    long = {"above_tokens": 9, "input_per_million": 1, "output_per_million": 6}
    dated = {"id": "api", "as_of": plans.DATE, "source": "a test"}
    with pytest.raises(ValueError, match="at least as the usual one, 2"):
        ApiPrice.model_validate({**spec, **dated, "long": long})
    with pytest.raises(ValueError, match="should be on or after as_of, 20"):
        ApiPrice.model_validate({**spec, **dated, "valid_until": plans.DATE - timedelta(1)})
    terms = {"term_months": 12, "payment": "no-upfront", "hourly": 2}
    with pytest.raises(ValueError, match="at most at on_demand_hourly, got 2"):
        Commitment.model_validate({**terms, "on_demand_hourly": Decimal("1.9")})
    with pytest.raises(ValueError, match="on_demand_hourly, the price of others, with machines"):
        Commitment.model_validate({**terms, "machines": 2})


@pytest.mark.parametrize(
    ("fields", "demand"),
    [
        ({"plan": "spot", "sustained_use": "gce-n1"}, "on-demand"),
        ({"free_if_taken_back_seconds": 60}, 'plan = "spot"'),
        (
            {"plan": "spot", "free_if_taken_back_seconds": 60, "maximum_lifetime_seconds": 9000},
            "either free_if_taken_back_seconds or maximum_lifetime_seconds",
        ),
        ({"components": [{"label": "x", "amount": 1, "billing": "per-second"}]}, "gb-month"),
    ],
)
def test_discounts_stand_in_the_plans_that_have_them(fields: dict[str, Any], demand: str) -> None:
    """A discount in a plan that cannot have it is a fault that says what is expected."""
    with pytest.raises(ValueError, match=demand):
        plans.plan(amount=Decimal(1), **fields)
