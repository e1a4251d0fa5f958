"""How a job becomes starts of a maximum lifetime, and what each start costs and takes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from epochcost.cost.bill import quote
from epochcost.cost.lines import Usage
from epochcost.cost.money import exact_arithmetic
from epochcost.cost.schedule import Schedule, uninterrupted_schedule
from epochcost.specs.price import Price
from epochcost.specs.terms import BILLING_RULES
from price_plans import job_seconds, plan, rented_plans

DAY, HOUR = Decimal(86_400), Decimal(3600)


def preemptible(**start: Any) -> Price:
    """A machine at $1 an hour that is ended after a day and restarts in two minutes."""
    return plan(
        plan="spot",
        amount=Decimal(1),
        billing="prorated",
        start={"seconds": Decimal(480), **start},
        interruptions={"rate_per_hour": Decimal(0), "restart_seconds": Decimal(120)},
        maximum_lifetime_seconds=DAY,
    )


def schedule(price: Price, used: Decimal) -> Schedule:
    """The schedule of a job under the plan's own billing."""
    with exact_arithmetic():
        return uninterrupted_schedule(price, used, price.billing_rule)


@pytest.mark.parametrize(
    ("used", "starts"),
    [(DAY - 480, 1), (DAY - 479, 2), (2 * DAY - 2 * 480 - 120, 2), (2 * DAY - 1079, 3)],
)
def test_a_job_longer_than_a_lifetime_starts_again(used: Decimal, starts: int) -> None:
    """Each day of lifetime holds a start-up and, from the second start on, a restart."""
    assert schedule(preemptible(), Decimal(used)).starts == starts


def test_every_start_is_rounded_by_itself() -> None:
    """In whole hours, the two seconds that two starts leave cost a third start of one hour."""
    price = plan(amount=Decimal(1), billing="whole-hour", maximum_lifetime_seconds=DAY - 1)
    used, unused = quote(price, Usage(2 * DAY)).lines
    assert used.amount == 48
    assert unused.amount == Decimal(1)
    assert quote(price, Usage(2 * DAY)).total == 49


def test_failed_starts_are_expected() -> None:
    """Starts of 240 s that fail one time in five are expected 1.25 times, with the charge."""
    failing = {"failure_probability": Decimal("0.2"), "failure_charge": Decimal("0.5")}
    price = plan(amount=Decimal(1), start={"seconds": Decimal(240), "billed": False, **failing})
    bill = quote(price, Usage(HOUR, 4))
    assert bill.lines[-1].label == "failed starts, expected"
    assert (bill.lines[-1].quantity, bill.lines[-1].amount) == (1, Decimal("0.5"))
    assert bill.elapsed_seconds == HOUR + 300


def test_starts_end_with_a_checkpoint() -> None:
    """A lifetime of 100 s holds work, a start, a restart and a save. The last start needs no save.

    Of 205 s the first start works 80 s, the second 60 s and the third the last 65 s.
    """
    pauses = {"rate_per_hour": Decimal(0), "restart_seconds": Decimal(20)}
    price = plan(
        plan="spot",
        amount=Decimal(1),
        billing="prorated",
        start={"seconds": Decimal(10)},
        interruptions={**pauses, "checkpoint_seconds": Decimal(10)},
        maximum_lifetime_seconds=Decimal(100),
    )
    got = schedule(price, Decimal(205))
    assert (got.starts, got.saving_seconds, got.starting_seconds) == (3, 20, 70)
    assert got.billed_seconds == got.elapsed_seconds == 205 + 20 + 70
    labels = [line.label for line in quote(price, Usage(Decimal(205))).lines]
    assert labels == ["compute, used", "compute, starting", "compute, checkpoints"]


@given(rented_plans(), job_seconds)
def test_starts_hold_all_the_work(price: Price, used: Decimal) -> None:
    """Billed time is work and start-ups. No start exceeds the lifetime, and none is idle."""
    with exact_arithmetic():
        got = uninterrupted_schedule(price, used, BILLING_RULES["prorated"])
    assert got.billed_seconds == got.used_seconds + got.starting_seconds
    lifetime = price.maximum_lifetime_seconds
    if lifetime is not None:
        assert got.billed_seconds <= got.starts * lifetime
        assert got.billed_seconds > (got.starts - 1) * lifetime
    else:
        assert got.starts == 1
