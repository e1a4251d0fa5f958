"""Interrupted jobs: each figure by closed form and simulation, and the lines of bills."""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochcost.cost.bill import quote, quote_quantile
from epochcost.cost.lines import Quote, Usage
from epochcost.cost.money import exact_arithmetic
from epochcost.cost.spot import (
    SimulatedRun,
    SpotJob,
    daly_interval_seconds,
    expected_time,
    round_up,
    rounding_seconds,
    simulate,
)
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.terms import BILLING_RULES, Billing, BillingName
from price_plans import figures, job_seconds, plan, rented_plans

HOUR, DAY = Decimal(3600), Decimal(86_400)
RUNS, SEED = 1000, 2016


def job(
    hours: int,
    per_hour: str,
    starts: tuple[int, int],
    save: int,
    interval: int | None,
    lifetime: Decimal | None = None,
) -> SpotJob:
    """A job with these hours of work and interruptions per hour."""
    first, later = map(Decimal, starts)
    between = None if interval is None else Decimal(interval)
    rate = Decimal(per_hour) / HOUR
    return SpotJob(hours * HOUR, rate, first, later, Decimal(save), between, lifetime)


JOBS = {
    "hardly ever interrupted": job(4, "0.02", (0, 60), 10, 900),
    "a few times": job(20, "0.2", (120, 300), 30, 1200),
    "all the time": job(6, "2", (60, 180), 20, 300),
    "restarts as long as stretches": job(3, "1", (600, 900), 30, 600),
    "one stretch": job(1, "0.5", (60, 60), 30, 7200),
    "no start": job(10, "0.3", (0, 0), 10, 600),
    "saved on notice": job(20, "0.3", (120, 300), 30, None),
    "ended after a day": job(100, "0.02", (120, 300), 30, 1800, DAY),
    "ended after a day, on notice": job(100, "0.05", (120, 300), 30, None, DAY),
    "ended once": job(30, "0.05", (120, 300), 30, 1800, DAY),
}
each_job = pytest.mark.parametrize("name", JOBS)


def mean(runs: Sequence[SimulatedRun], of: Callable[[SimulatedRun], float]) -> tuple[float, float]:
    """The mean of a figure over all runs, and four standard errors of the mean."""
    values = [of(run) for run in runs]
    return statistics.fmean(values), 4 * statistics.stdev(values) / math.sqrt(len(values))


@each_job
def test_closed_form_and_simulation_agree(name: str) -> None:
    """Closed form and simulation differ by four standard errors at most.

    If lifetimes end starts, they may also differ by one start and save.
    """
    job = JOBS[name]
    with exact_arithmetic():
        time = expected_time(job)
        parts = time.work + time.saving + time.starting + time.rework
    assert float(time.running) == pytest.approx(float(parts))
    runs = simulate(job, RUNS, SEED)
    ends = 0.0 if job.lifetime is None else 1.0
    for closed, of, more in (
        (time.running, lambda run: run.running, float(job.later_start + job.save)),
        (time.saving, lambda run: run.saving, float(job.save)),
        (time.interruptions, lambda run: sum(cut for _, cut in run.starts), 0.3),
        (time.starts, lambda run: len(run.starts), 1.0),
    ):
        played, error = mean(runs, of)
        assert abs(float(closed) - played) <= error + ends * more + 1e-6


def billed_beyond_running(run: SimulatedRun, rule: Billing) -> float:
    """The time that rounding adds to the starts of a run."""
    billed = (float(round_up(Decimal(repr(ended)), rule)) for ended, _ in run.starts)
    return math.fsum(billed) - run.running


@pytest.mark.parametrize("rule", ["whole-hour", "ten-minutes", "per-second"])
@each_job
def test_rounding_as_played_out(name: str, rule: BillingName) -> None:
    """The time that rounding adds is simulated within half a step and a tenth for each start.

    The closed form takes the last start to end anywhere in a step, and an interrupted start as if
    it were the first.
    """
    job, steps = JOBS[name], BILLING_RULES[rule]
    with exact_arithmetic():
        time = expected_time(job)
        added = float(rounding_seconds(job, time, steps))
    runs = simulate(job, RUNS, SEED)
    played, error = mean(runs, lambda run: billed_beyond_running(run, steps))
    step = float(max(steps.increment_seconds, steps.minimum_seconds / 20))
    assert abs(added - played) <= error + step * (0.5 + 0.1 * float(time.starts))


def spot(amount: str = "0.36", billing: BillingName = "prorated", **terms: Any) -> Price:
    """A spot plan. Times of ``terms`` are in seconds."""
    named = {
        key: value if isinstance(value, bool) else Decimal(value) for key, value in terms.items()
    }
    return plan(plan="spot", amount=Decimal(amount), billing=billing, interruptions=named)


@pytest.mark.parametrize("minutes", [1, 2, 9, 50])
@pytest.mark.parametrize("billing", BILLING_RULES)
def test_interruptions_never_lower_the_bill(minutes: int, billing: BillingName) -> None:
    """A job that is shorter than the minimum costs two minimums if it is interrupted once."""
    terms = {"checkpoint_seconds": 60, "restart_seconds": 90, "notice_seconds": 30}
    bills = [
        quote(spot(billing=billing, rate_per_hour=rate, **terms), Usage(Decimal(60 * minutes)))
        for rate in ("0", "0.1", "2")
    ]
    totals = [bill.total for bill in bills]
    assert totals == sorted(totals)


@given(rented_plans(), job_seconds)
def test_a_rate_of_zero_costs_the_list_price(price: Price, used: Decimal) -> None:
    """At a rate of 0 the bill equals that of a plan without interruptions, to the last digit."""
    assert price.interruptions is None or price.interruptions.rate_per_hour == 0
    free = price.model_copy(
        update={"interruptions": None, "maximum_lifetime_seconds": None, "credit": None}
    )
    never = {"rate_per_hour": Decimal(0), "checkpoint_seconds": Decimal(30)}
    calm = plan(**{**free.model_dump(exclude_none=True), "interruptions": never})
    assert quote(calm, Usage(used)) == quote(free, Usage(used))
    assert quote_quantile(calm, Usage(used), 0.95).lines == quote(free, Usage(used)).lines


def test_the_lines_of_a_bill() -> None:
    """The bill of an hour with a save every ten minutes equals the sum computed by hand."""
    price = spot(
        rate_per_hour=1, checkpoint_seconds=60, checkpoint_interval_seconds=600, restart_seconds=120
    )
    bill = quote(price, Usage(HOUR))
    assert [line.label for line in bill.lines] == [
        "compute, used",
        "compute, checkpoints",
        "compute, rework expected",
        "compute, restarts expected",
    ]
    expected = math.exp(120 / 3600) * 3600 * (5 * math.expm1(660 / 3600) + math.expm1(600 / 3600))
    assert float(bill.total) == pytest.approx(expected * 1e-4)
    assert [line.amount for line in bill.lines[:2]] == [Decimal("0.36"), Decimal("0.03")]
    restarts = expected / 3600 * -math.expm1(-120 / 3600) * 3600
    assert float(bill.lines[3].amount) == pytest.approx(restarts * 1e-4)
    assert float(bill.elapsed_seconds) == pytest.approx(expected)


def test_notice_saves_work() -> None:
    """A notice long enough for a checkpoint leaves no work to repeat."""
    terms = {"rate_per_hour": 1, "checkpoint_seconds": 60, "restart_seconds": 120}
    warned = quote(spot(**terms, notice_seconds=60), Usage(10 * HOUR))
    unwarned = quote(spot(**terms, notice_seconds=59), Usage(10 * HOUR))
    assert "compute, rework expected" not in [line.label for line in warned.lines]
    assert warned.total < unwarned.total


@pytest.mark.parametrize(
    "name", ["hardly ever interrupted", "a few times", "all the time", "saved on notice"]
)
def test_nine_of_ten_runs_lie_between_the_ends(name: str) -> None:
    """About 90 % of simulated running times lie between the 5 % and 95 % ends."""
    one = JOBS[name]
    price = plan(
        plan="spot",
        amount=Decimal(1),
        billing="prorated",
        start={"seconds": one.first_start},
        interruptions={
            "rate_per_hour": one.rate * HOUR,
            "checkpoint_seconds": one.save,
            "checkpoint_interval_seconds": one.interval or Decimal(1),
            "notice_seconds": one.save if one.interval is None else Decimal(0),
            "restart_seconds": one.later_start - one.first_start,
        },
    )
    usage = Usage(one.work)
    low, high = (
        float(quote_quantile(price, usage, share).elapsed_seconds) for share in (0.05, 0.95)
    )
    played = simulate(one, RUNS, SEED)
    inside = sum(low - 1e-6 <= run.running <= high + 1e-6 for run in played) / RUNS
    assert 0.87 <= inside <= 0.97


def test_a_long_job_has_a_narrower_range() -> None:
    """A hundred times the work has a tenth of the relative range, as for a sum."""
    terms = {"rate_per_hour": Decimal("0.5"), "checkpoint_seconds": Decimal(30)}
    price = plan(plan="spot", amount=Decimal(1), billing="prorated", interruptions=terms)

    def width(hours: int) -> Decimal:
        usage = Usage(hours * HOUR)
        low, high = (quote_quantile(price, usage, share).total for share in (0.05, 0.95))
        return (high - low) / quote(price, usage).total

    assert float(width(10_000)) == pytest.approx(float(width(100)) / 10, rel=0.15)


terms_of_all_kinds = st.fixed_dictionaries(
    {
        "rate_per_hour": figures("0", "50", "1e-6"),
        "checkpoint_seconds": figures("0", "5000"),
        "restart_seconds": figures("0", "5000"),
        "notice_seconds": figures("0", "200"),
    },
    optional={"checkpoint_interval_seconds": figures("0.001", "1e6", "0.001")},
)


def bills_or_a_sentence(price: Price, usage: Usage) -> list[Quote]:
    """The expected bill and both ends; an empty list if one of them is refused."""
    bills = []
    with contextlib.suppress(InputError):
        for bill in (
            quote,
            partial(quote_quantile, probability=0.05),
            partial(quote_quantile, probability=0.95),
        ):
            bills.append(bill(price, usage))
    return bills if len(bills) == 3 else []


@given(
    terms_of_all_kinds,
    figures("0.001", "1e6", "0.001"),
    st.sampled_from(list(BILLING_RULES)),
    st.none() | figures("20000", "200000", "1"),
    st.booleans(),
)
def test_any_terms_make_a_bill_or_a_sentence(
    terms: dict[str, Any],
    used: Decimal,
    billing: BillingName,
    lifetime: Decimal | None,
    billed: bool,
) -> None:
    """Lines add up, no line is negative, and the ends are in order."""
    start = {"seconds": Decimal(90), "billed": billed}
    price = plan(
        plan="spot",
        amount=Decimal(36),
        billing=billing,
        start=start,
        interruptions=terms,
        maximum_lifetime_seconds=lifetime,
    )
    bills = bills_or_a_sentence(price, Usage(used))
    listed = quote(plan(amount=Decimal(36), billing=billing, start=start), Usage(used))
    for bill in bills:
        assert sum(line.amount for line in bill.lines) == bill.total
        assert bill.total >= 0
        assert bill.elapsed_seconds >= listed.elapsed_seconds
        assert all(line.amount >= 0 for line in bill.lines)
    if bills:
        assert bills[1].total <= bills[2].total


def test_daly_by_hand() -> None:
    """For a save of 2 s and an interruption in 100 s, the interval is 20 (1 + 1/30 + 1/900) - 2."""
    got = daly_interval_seconds(Decimal(2), Decimal(100))
    assert got.quantize(Decimal("1e-12")) == Decimal("18.688888888889")


@pytest.mark.parametrize(("save", "between"), [("5", "36000"), ("60", "7200"), ("300", "1800")])
def test_daly_is_the_cheapest_interval(save: str, between: str) -> None:
    """An eighth more or less work between saves takes longer, and Young's interval is no better.

    Young's is the first-order optimum (J. W. Young, Communications of the ACM 17 (9), 1974, pp.
    530-531).
    """
    best = daly_interval_seconds(Decimal(save), Decimal(between))

    def running(interval: Decimal) -> Decimal:
        work = 10**9 * interval
        job = SpotJob(work, 1 / Decimal(between), Decimal(0), Decimal(60), Decimal(save), interval)
        with exact_arithmetic():
            return expected_time(job).running / work

    young = (2 * Decimal(save) * Decimal(between)).sqrt()
    others = best * 7 / 8, best * 9 / 8, young
    assert all(running(best) < running(other) for other in others)
