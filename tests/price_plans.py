"""Price plans for tests of the cost engine, valid unless a test makes them otherwise."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

from hypothesis import strategies as st

from epochcost.specs.billing import BILLING_RULES, Billing, BillingName
from epochcost.specs.price import Owned, Price

DATE = dt.date(2016, 11, 1)


def rented(
    amount: str | Decimal = "0.90",
    billing: BillingName | Billing = "per-second",
    identifier: str = "p2.xlarge-on-demand",
    currency: str = "USD",
) -> Price:
    """A rented machine at so much per hour."""
    return Price(
        id=identifier,
        hardware="p2.xlarge",
        plan="on-demand",
        provider="AWS",
        currency=currency,
        amount=Decimal(amount),
        billing=billing,
        source="a price list",
        as_of=DATE,
    )


def owned(
    residual: str = "10",
    utilisation: str = "0.25",
    years: str = "4",
    *,
    per_vcpu: bool = False,
) -> Price:
    """A machine of 100 dollars that draws 10 W, in a room of PUE 1.1, electricity at 20 cents."""
    table = Owned(
        purchase=Decimal(100),
        residual=Decimal(residual),
        years=Decimal(years),
        utilisation=Decimal(utilisation),
        power_watts=Decimal(10),
        pue=Decimal("1.1"),
        electricity_per_kwh=Decimal("0.20"),
        per_vcpu=per_vcpu,
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
    """Finite decimals with every exponent in between."""
    return st.decimals(Decimal(low), Decimal(high), allow_nan=False, allow_infinity=False)


durations = decimals("1e-18", "3e9")
rates = decimals("1e-18", "1e15")
counts = st.integers(1, 1_000_000)
rules = st.one_of(
    st.sampled_from(list(BILLING_RULES.values())),
    st.builds(
        Billing, increment_seconds=decimals("0", "1e6"), minimum_seconds=decimals("0", "1e6")
    ),
)
