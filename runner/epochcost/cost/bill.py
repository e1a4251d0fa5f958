"""Make all bills for the use of machines under a price plan; see docs/decisions/0005-bills.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial

from epochcost.cost.lines import Line, Quote, Usage
from epochcost.cost.money import exact_arithmetic, quantized, require_currency
from epochcost.cost.owned import owned_lines, owned_units
from epochcost.cost.rented import RentedUsage, compute_charge, hourly_lines, job_lines
from epochcost.cost.schedule import Schedule, expected_schedule, schedule_quantile, shared_schedule
from epochcost.cost.spot import SHOWN_RATES, can_be_interrupted, interrupted_at, round_up
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.terms import Billing, Credit

# The probabilities of two quantiles between which nine of ten runs are.
NINE_OF_TEN = (0.05, 0.95)


def quote(
    price: Price, usage: Usage, *, billing: Billing | None = None, credited: bool = True
) -> Quote:
    """Bill a usage under a price plan as a whole job, not as a part of a longer job.

    The bill of rented machines includes starts, expected interruptions, charges per run and the
    rounding of time. ``billing`` replaces the plan's billing rule. Free credit pays first, unless
    ``credited`` is False. Raises InputError if the egress has no price or an amount overflows, and
    for a plan per vCPU if the usage has accelerators or no ``vcpus``.
    """
    return _bill_job(
        price, usage, billing or price.billing_rule, expected_schedule, credited=credited
    )


def quote_quantile(price: Price, usage: Usage, probability: float) -> Quote:
    """The bill that a job does not exceed with the given ``probability``, above 0 and below 1.

    Only interruptions make a bill uncertain. Free credit is left out. Raises InputError as
    ``quote`` does.
    """
    schedule_by = partial(schedule_quantile, probability=probability)
    return _bill_job(price, usage, price.billing_rule, schedule_by, credited=False)


def totals_by_rate(price: Price, usage: Usage) -> list[tuple[Decimal, Decimal]]:
    """Pairs of an assumed number of interruptions an hour and the bill's total at this rate.

    Empty unless the provider may interrupt the machines and the price does not state how often.
    """
    rates = SHOWN_RATES if can_be_interrupted(price) else ()
    return [(rate, quote(interrupted_at(price, rate), usage).total) for rate in rates]


def in_constant_use(price: Price) -> Price:
    """A copy of a price whose machine is never idle: the utilisation of its plan is 1."""
    parts = {"owned": price.owned, "commitment": price.commitment}
    update = {
        name: part.model_copy(update={"utilisation": Decimal(1)})
        for name, part in parts.items()
        if part is not None and part.utilisation < 1
    }
    return price.model_copy(update=update) if update else price


def _bill_job(
    price: Price,
    usage: Usage,
    rule: Billing,
    schedule_by: Callable[[Price, Decimal, Billing], Schedule],
    *,
    credited: bool,
) -> Quote:
    with exact_arithmetic():
        _refuse_unpriced_egress(price, usage)
        if price.owned is not None:
            return _owned(price, usage)
        lay_out = partial(schedule_by, price, usage.duration_seconds)
        schedule = lay_out(rule)
        rented = RentedUsage(usage.count, usage.runs, usage.egress_gb)
        lines = tuple(job_lines(price, schedule, rented, lay_out))
        bill = _quote_of(price, lines, schedule.elapsed_seconds * usage.runs)
        return _with_credit_line(bill, price.credit) if price.credit and credited else bill


def _with_credit_line(bill: Quote, credit_terms: Credit) -> Quote:
    credit = quantized(credit_terms.amount)
    used, lines = min(credit, bill.total), bill.lines
    if used > 0:
        lines = (*lines, Line(credit_terms.label, Decimal(1), "credit", -used, -used))
    return replace(bill, lines=lines, credit_used=used, credit_left=credit - used)


def share(price: Price, usage: Usage) -> Quote:
    """Bill a part of a longer job, such as an epoch, for the part's own time and egress.

    The bill leaves out starts, interruptions, charges per run, free credit and the rounding of
    time. Raises InputError as ``quote`` does, and if a rented plan has no hourly charge.
    """
    return _bill_job(price, usage, price.billing_rule, shared_schedule, credited=False)


def quote_at_rate(
    rate_per_hour: Decimal, billing: Billing, usage: Usage, currency: str = "USD"
) -> Quote:
    """Bill a usage at an hourly rate, without a price spec.

    Raises InputError for a rate below 1e-18 or not finite, an unknown currency, or any egress.
    """
    require_currency(currency)
    with exact_arithmetic():
        if usage.egress_gb > 0:
            raise InputError("egress: expected a price plan with a price per GB, got a bare rate")
        used = usage.duration_seconds
        schedule = Schedule(used, Decimal(0), round_up(used, billing), used)
        charge = compute_charge(rate_per_hour, usage.machines)
        lines = tuple(hourly_lines([charge], schedule, usage.machines))
        elapsed = schedule.elapsed_seconds * usage.runs
    return Quote(lines, currency, None, assumed=False, elapsed_seconds=elapsed)


def _owned(price: Price, usage: Usage) -> Quote:
    assert price.owned is not None, "callers check for an owned plan"
    whole = replace(usage, duration_seconds=usage.duration_seconds * usage.runs, runs=1)
    elapsed = whole.duration_seconds
    units = owned_units(price.owned, price.id, usage.vcpus, accelerated=usage.accelerated)
    lines = tuple(owned_lines(price.owned, elapsed, usage.count * units))
    return _quote_of(price, lines, elapsed)


def _quote_of(price: Price, lines: tuple[Line, ...], elapsed_seconds: Decimal) -> Quote:
    return Quote(lines, price.currency, price.id, price.assumed, elapsed_seconds, price.as_of)


def _refuse_unpriced_egress(price: Price, usage: Usage) -> None:
    if usage.egress_gb > 0 and not any(part.per == "gb" for part in price.components):
        raise InputError(
            f'{price.id}: expected a plan with a component per = "gb" for egress, found none'
        )
