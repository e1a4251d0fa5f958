"""Price plans for tests of the cost engine, and strategies that draw plans of every kind.

All plans are valid unless a test changes them.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from epochcost.specs.base import SMALLEST
from epochcost.specs.price import Owned, Price
from epochcost.specs.terms import (
    BILLING_RULES,
    Billing,
    BillingName,
    Commitment,
    Component,
    Credit,
    Interruptions,
    Start,
)

DATE = dt.date(2016, 11, 1)


def rented(
    amount: str | Decimal = "0.90",
    billing: BillingName | Billing = "per-second",
    identifier: str = "p2.xlarge-on-demand",
    currency: str = "USD",
) -> Price:
    """A rented machine at this amount per hour."""
    return plan(id=identifier, amount=Decimal(amount), billing=billing, currency=currency)


def plan(**fields: Any) -> Price:
    """A plan of a rented machine with these fields of its spec."""
    named = {"id": "p2.xlarge-on-demand", "plan": "on-demand", "hardware": "p2.xlarge"}
    listed = {"provider": "AWS", "source": "a price list", "as_of": DATE}
    return Price.model_validate({**named, **listed, **fields})


def owned(
    residual: str = "10",
    utilisation: str = "0.25",
    years: str = "4",
    *,
    per_vcpu: bool = False,
    **upkeep: str,
) -> Price:
    """An owned machine for 100 dollars that draws 10 W, with PUE 1.1 and 20 cents a kWh.

    ``upkeep`` is idle power, rack and maintenance, by key.
    """
    table = Owned(
        purchase=Decimal(100),
        residual=Decimal(residual),
        years=Decimal(years),
        utilisation=Decimal(utilisation),
        power_watts=Decimal(10),
        pue=Decimal("1.1"),
        electricity_per_kwh=Decimal("0.20"),
        per_vcpu=per_vcpu,
        **{key: Decimal(value) for key, value in upkeep.items()},
    )
    return Price(
        id="bought",
        hardware="local",
        plan="owned",
        provider="local",
        owned=table,
        assumed=True,
        source="a test",
        as_of=DATE,
    )


def decimals(low: str, high: str) -> st.SearchStrategy[Decimal]:
    """Decimals of every exponent that specs accept between two ends, and 0 if it is an end."""
    least = max(Decimal(low), SMALLEST)
    drawn = st.decimals(least, Decimal(high), allow_nan=False, allow_infinity=False)
    return drawn if Decimal(low) else st.one_of(st.just(Decimal(0)), drawn)


durations = decimals("1e-18", "3e9")
rates = decimals("1e-18", "1e15")
counts = st.integers(1, 1_000_000)
rules = st.one_of(
    st.sampled_from(list(BILLING_RULES.values())),
    st.builds(
        Billing,
        increment_seconds=st.one_of(st.just(Decimal(0)), decimals("0.001", "1e6")),
        minimum_seconds=decimals("0", "1e6"),
    ),
)


def figures(low: str, high: str, step: str = "0.0001") -> st.SearchStrategy[Decimal]:
    """Decimals as in price lists: whole multiples of a step."""
    size = Decimal(step)
    ends = int(Decimal(low) / size), int(Decimal(high) / size)
    return st.integers(*ends).map(lambda number: number * size)


job_seconds = figures("0.001", "1e7", "0.001")
amounts = figures("0.0001", "150")
shares = figures("0.01", "1")
starts = st.builds(
    Start,
    seconds=figures("0", "900", "0.5"),
    billed=st.booleans(),
    failure_probability=figures("0", "0.9"),
    failure_charge=figures("0", "5"),
)
credits_given = st.builds(Credit, amount=figures("0.01", "1000"))
uninterrupting = st.builds(
    Interruptions, rate_per_hour=st.just(Decimal(0)), restart_seconds=figures("0", "600", "0.5")
)
hourly_components = st.builds(
    Component, label=st.just("K80"), amount=amounts, count=st.integers(1, 8).map(Decimal)
)
premiums = st.builds(Component, label=st.just("Skylake premium"), percent=figures("0", "40"))
other_components = st.one_of(
    st.builds(
        lambda per, amount: Component(label=f"a {per}", per=per, amount=amount),
        per=st.sampled_from(("gb-month", "gb", "run")),
        amount=amounts,
    ),
    st.builds(
        Component, label=st.just("disk"), per=st.just("gb-month"), amount=amounts, billing=rules
    ),
)
no_upfront = st.builds(
    Commitment,
    term_months=st.sampled_from((Decimal(12), Decimal(36))),
    payment=st.just("no-upfront"),
    hourly=amounts,
    utilisation=shares,
)
all_upfront = st.builds(
    Commitment,
    term_months=st.sampled_from((Decimal(12), Decimal(36))),
    payment=st.just("all-upfront"),
    upfront=figures("1", "1e5"),
    utilisation=shares,
)
partial_upfront = st.builds(
    Commitment,
    term_months=st.integers(1, 60).map(Decimal),
    payment=st.just("partial-upfront"),
    upfront=figures("1", "1e5"),
    hourly=amounts,
    utilisation=shares,
)


@st.composite
def covering_commitments(draw: st.DrawFn) -> Commitment:
    """Commitments for a number of machines, also a fraction, and a price for further machines."""
    terms = draw(st.one_of(no_upfront, partial_upfront, all_upfront))
    priced = {"on_demand_hourly": terms.by_the_hour + draw(amounts), "machines": draw(covered)}
    return Commitment.model_validate({**terms.model_dump(), **priced})


covered = figures("0.25", "20", "0.25")
commitments = st.one_of(no_upfront, partial_upfront, all_upfront, covering_commitments())


# Made once: strategies made while drawing cost most of the time of a test.
_kinds = st.sampled_from(("on-demand", "spot", "managed", "marketplace", "reserved"))
_parts = tuple(st.none() | part for part in (hourly_components, premiums, other_components))
_pauses = st.none() | uninterrupting
_discounts = st.sampled_from((None, "gce-n1"))
_working_seconds = st.none() | figures("1", "1e5")


@st.composite
def rented_plans(draw: st.DrawFn) -> Price:
    """Rented plans of every kind without credit: an amount, a commitment or components only."""
    kind, start, pauses, working = map(draw, (_kinds, starts, _pauses, _working_seconds))
    hourly, premium, other = map(draw, _parts)
    terms = draw(commitments) if kind == "reserved" else None
    if terms is not None and terms.on_demand_hourly is not None:
        premium = None
    if kind == "managed" and hourly is None:
        hourly = draw(hourly_components)
    begun = start.seconds
    begun += pauses.restart_seconds + pauses.checkpoint_seconds if pauses else 0
    return plan(
        plan=kind,
        amount=draw(amounts) if kind not in {"managed", "reserved"} else None,
        commitment=terms,
        sustained_use=draw(_discounts) if kind == "on-demand" else None,
        components=[part for part in (hourly, premium, other) if part is not None],
        billing=draw(rules),
        start=start,
        interruptions=pauses,
        maximum_lifetime_seconds=None if working is None else begun + working,
    )


all_plans = st.one_of(rented_plans(), st.just(owned()), st.just(owned("100")))
