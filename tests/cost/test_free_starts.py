"""Free starts in closed form agree with the simulation, which shares no code with it."""

from __future__ import annotations

from decimal import Decimal

import pytest

import price_plans as plans
from epochcost.cost.bill import quote, quote_quantile
from epochcost.cost.lines import Usage
from epochcost.cost.money import exact_arithmetic
from epochcost.cost.spot import simulate, spot_job
from epochcost.specs.price import Price
from epochcost.specs.terms import Billing, Interruptions

HOUR = Decimal(3600)
FREE = 3600


def spot(pauses: Interruptions, start: str = "0") -> Price:
    """A spot plan at a dollar an hour, free if taken back in the first hour."""
    return plans.plan(
        plan="spot",
        amount=Decimal(1),
        billing="prorated",
        interruptions=pauses,
        start={"seconds": Decimal(start)},
        free_if_taken_back_seconds=Decimal(FREE),
    )


def pauses(rate: str, save: int, every: int | None, again: int, notice: int = 0) -> Interruptions:
    """Interruptions at a rate, with seconds to save, between saves, to restart and of notice."""
    return Interruptions(
        rate_per_hour=Decimal(rate),
        checkpoint_seconds=Decimal(save),
        checkpoint_interval_seconds=None if every is None else Decimal(every),
        restart_seconds=Decimal(again),
        notice_seconds=Decimal(notice),
    )


def test_the_first_hour_of_a_start_is_free() -> None:
    """The bill of two hours at one interruption an hour: e² - 1 hours less e² (1 - 2/e) free."""
    cost = quote(spot(pauses("1", 0, 7200, 0)), Usage(2 * HOUR)).total
    assert round(cost, 4) == Decimal("4.4366")


@pytest.mark.parametrize(
    ("terms", "hours"),
    [
        (pauses("1", 0, 600, 0), "2"),
        (pauses("1", 30, 600, 60), "5"),
        (pauses("1", 30, 1800, 600), "0.7"),
        (pauses("2", 5, 5000, 100), "3"),
        (pauses("0.7", 30, None, 300, notice=120), "5"),
        (pauses("0.7", 30, None, 300, notice=120), "0.4"),
    ],
)
def test_simulated_runs_cost_as_much(terms: Interruptions, hours: str) -> None:
    """The bill is within 2 % of 20,000 simulated jobs' mean cost without free starts."""
    price, used = spot(terms, start="45"), Decimal(hours) * HOUR
    with exact_arithmetic():
        job = spot_job(price, used)
    assert job is not None
    saved = float(job.save) if job.interval is None else 0.0
    begin = float(job.later_start)
    runs = simulate(job, 20_000, seed=5)
    paid = sum(
        seconds
        for run in runs
        for seconds, taken in run.starts
        if not taken or seconds - saved * (seconds > begin) >= FREE
    )
    assert quote(price, Usage(used)).total == pytest.approx(
        Decimal(paid / len(runs) / 3600), rel=Decimal("0.02")
    )


def test_a_free_hour_is_a_line_and_never_more_than_the_lost_time() -> None:
    """The free line is less than what interruptions add, and 0 without interruptions."""
    price = spot(pauses("0.5", 30, 1800, 300))
    bill = quote(price, Usage(5 * HOUR))
    free = sum(line.amount for line in bill.lines if line.label == "free, as taken back early")
    listed = quote(
        price.model_copy(update={"free_if_taken_back_seconds": Decimal(0)}), Usage(5 * HOUR)
    )
    assert free < 0
    assert bill.total == listed.total + free
    assert bill.total > 5
    assert quote(spot(pauses("0", 30, 1800, 300)), Usage(5 * HOUR)).total == 5


def test_starts_are_rounded_only_where_they_are_billed() -> None:
    """A minimum of a minute adds almost nothing for starts that end free in their first hour."""
    terms = pauses("1", 30, 1800, 300)
    rounded = spot(terms).model_copy(update={"billing": "per-second"})
    used = Usage(5 * HOUR)
    added = quote(rounded, used).total - quote(spot(terms), used).total
    assert 0 < added < Decimal("0.002")


@pytest.mark.parametrize(("hours", "probability"), [(5, 0.1), (10, 0.05)])
def test_rounding_never_lowers_the_bill_of_a_run(hours: int, probability: float) -> None:
    """With billing by the hour, the line of unused seconds adds to the bill of a lucky run, too."""
    rule = Billing(increment_seconds=HOUR, minimum_seconds=Decimal(0))
    price = spot(pauses("0.5", 0, 600, 60)).model_copy(update={"billing": rule})
    lines = quote_quantile(price, Usage(hours * HOUR), probability).lines
    [unused] = [line for line in lines if line.label == "compute, billed but unused"]
    assert unused.amount > 0
