"""A plan's program gives the engine's bill, for generated plans and plans of the catalogue."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import price_plans as plans
from bill_programs import Bill, run
from epochcost.cost.bill import quote, share
from epochcost.cost.lines import Quote, Usage
from epochcost.cost.program import RATE, bill_program, share_program
from epochcost.errors import InputError
from epochcost.specs.loader import load_catalogue
from epochcost.specs.price import Price
from epochcost.specs.terms import Interruptions, Start

CATALOGUE = load_catalogue(Path(__file__).parents[2])
# A program's constants are binary floats, of 16 digits.
TOLERANCE = Decimal("1e-9")
SOME_VCPUS = 4


def close(left: Decimal, right: Decimal) -> bool:
    """Whether two figures agree to nine digits."""
    return abs(left - right) <= TOLERANCE * max(abs(left), abs(right), Decimal("1e-6"))


def programmed(price: Price, usage: Usage, *, shared: bool = False) -> Bill:
    """The bill that a published program computes."""
    program = share_program(price) if shared else bill_program(price)
    emitted = json.loads(json.dumps(program, allow_nan=False))
    asked = {
        "seconds": usage.duration_seconds,
        "count": Decimal(usage.count),
        "runs": Decimal(usage.runs),
        "vcpus": Decimal(usage.vcpus or 1),
    }
    return run(emitted, asked)


def agree(bill: Bill, engine: Quote) -> None:
    """Require the engine's total, lines and time. Lines of almost nothing may be missing."""
    assert close(bill.total, engine.total), (bill, engine)
    assert close(bill.elapsed_seconds, engine.elapsed_seconds), (bill, engine)
    least = TOLERANCE * max(abs(engine.total), Decimal("1e-6"))
    said = {label: amount for label, amount in bill.lines if abs(amount) > least}
    meant = {line.label: line.amount for line in engine.lines if abs(line.amount) > least}
    assert said.keys() == meant.keys()
    assert all(
        close(said[label], meant[label]) for label in said if abs(said[label]) > 1000 * least
    )


@given(plans.all_plans, plans.job_seconds, st.integers(1, 50), st.integers(1, 50))
def test_uninterrupted_bills_agree(price: Price, seconds: Decimal, count: int, runs: int) -> None:
    """Parts, premiums, starts, lifetimes, rounding and charges are those of the engine."""
    usage = Usage(seconds, count=count, runs=runs)
    agree(programmed(price, usage), quote(price, usage, credited=False))


@given(plans.all_plans, plans.job_seconds, st.integers(1, 50))
def test_shares_agree(price: Price, seconds: Decimal, count: int) -> None:
    """A share of a longer job equals the engine's, or both refuse it."""
    usage = Usage(seconds, count=count)
    try:
        engine = share(price, usage)
    except InputError:
        with pytest.raises(InputError):
            share_program(price)
        return
    agree(programmed(price, usage, shared=True), engine)


interruptions = st.builds(
    Interruptions,
    rate_per_hour=plans.figures("0.001", "2", "0.001"),
    notice_seconds=st.sampled_from((Decimal(0), Decimal(120))),
    checkpoint_seconds=plans.figures("0", "300", "0.5"),
    checkpoint_interval_seconds=st.none() | plans.figures("60", "7200", "1"),
    restart_seconds=plans.figures("0", "600", "0.5"),
)


@given(
    interruptions,
    st.builds(Start, seconds=plans.figures("0", "300", "0.5"), billed=st.booleans()),
    plans.rules,
    st.none() | plans.figures("3600", "86400", "1"),
    plans.figures("1", "3e5", "0.001"),
)
def test_interrupted_bills_agree(
    pauses: Interruptions, start: Start, rule: object, lifetime: Decimal | None, seconds: Decimal
) -> None:
    """Expected interruptions, checkpoints and rounding equal those of the engine."""
    price = plans.plan(
        plan="spot",
        amount=Decimal("0.9"),
        interruptions=pauses,
        start=start,
        billing=rule,
        maximum_lifetime_seconds=lifetime,
    )
    usage = Usage(seconds)
    try:
        engine = quote(price, usage, credited=False)
    except InputError:
        return
    agree(programmed(price, usage), engine)


@pytest.mark.parametrize("hours", [Decimal("0.01"), Decimal(1), Decimal("37.5"), Decimal(2000)])
def test_every_plan_of_the_catalogue_agrees(hours: Decimal) -> None:
    """Each price of the catalogue gives the engine's bill from half a minute to months."""
    for price in CATALOGUE.prices.values():
        usage = Usage(hours * 3600, count=2, runs=3, vcpus=SOME_VCPUS)
        try:
            engine = quote(price, usage, credited=False)
        except InputError:
            continue
        agree(programmed(price, usage), engine)


def test_a_rate_of_interruptions_can_be_changed() -> None:
    """A program with another rate of interruptions, 0 included, bills as a plan of that rate."""
    pauses = Interruptions(rate_per_hour=Decimal("0.05"), checkpoint_seconds=Decimal(30))
    price = plans.plan(plan="spot", amount=Decimal("0.9"), interruptions=pauses)
    program = bill_program(price)
    for rate in (Decimal("0.2"), Decimal(0)):
        changed = pauses.model_copy(update={"rate_per_hour": rate})
        other = price.model_copy(update={"interruptions": changed})
        bill = run(program, {"seconds": Decimal(50_000), RATE: rate})
        agree(bill, quote(other, Usage(Decimal(50_000))))
