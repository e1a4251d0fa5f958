"""Write values of results for readers, rounded; templates use these functions as filters."""

from __future__ import annotations

import math
from decimal import Decimal

from epochcost import units
from epochcost.analysis.observations import Observation
from epochcost.analysis.tokens import Requests
from epochcost.cost.bill import share
from epochcost.cost.estimate import WIDEST, Cost, Estimate, Time, Unpriced
from epochcost.cost.lines import Usage
from epochcost.report.list_prices import hourly
from epochcost.specs.price import Price
from epochcost.specs.terms import Billing
from epochcost.statistics.interval import Bounded

# Factors below it are easier to read as fractions.
_TENTH = 0.1
# For an interval of two or three scattered samples, or wider than its value in percent.
_UNBOUNDED, _WHOLE = "uncertain", 100
SHAPES = {
    "measured": "●",
    "measured, price assumed": "■",
    "published": "◆",
    "published, price assumed": "▲",
    "predicted": "○",
    "predicted, price assumed": "▷",
    "estimated": "✚",
    "estimated, price assumed": "▽",
}


def render_mark(mark: str) -> str:
    """Format a mark such as "measured, price assumed" as "measured · assumed price"."""
    return mark.replace(", price assumed", " · assumed price")


def render_cost(cost: Cost | None) -> str:
    """Format the mean of a cost; "no price" if it is unpriced, a dash if ``cost`` is None."""
    if cost is None:
        return "—"
    if isinstance(cost, Unpriced):
        return "no price"
    return units.money(cost.mean, cost.currency)


def cost_range(cost: Estimate) -> str:
    """Format the low and the high end of an uncertain cost."""
    return units.money_range(cost.low, cost.high, cost.currency)


def time_range(time: Time) -> str:
    """Format the low and the high end of an uncertain time."""
    return f"{units.seconds(float(time.low))} to {units.seconds(float(time.high))}"


def render_time(time: Time | Decimal | float | None) -> str:
    """Format a duration; a dash if it is unknown."""
    if time is None:
        return "—"
    return units.seconds(float(time.mean if isinstance(time, Time) else time))


def spread(value: Time | Estimate | Unpriced | None) -> str:
    """Format an interval's wider half in percent of the mean; empty without an interval."""
    if value is None or isinstance(value, Unpriced) or value.low == value.high:
        return ""
    if not value.bounded:
        return _UNBOUNDED
    half = max(value.high - value.mean, value.mean - value.low) / value.mean * 100
    return f"± {max(half, Decimal('0.1')):.1f} %" if half < _WHOLE else _UNBOUNDED


def render_times(factor: Bounded | float) -> str:
    """Format a factor; below 0.1 as a fraction such as 1/94, and as a dash if it is infinite."""
    value = factor.mean if isinstance(factor, Bounded) else factor
    if value == math.inf:
        return "—"
    return units.rounded(value) if value >= _TENTH else f"1/{1 / value:,.0f}"


def times_range(factor: Bounded) -> str:
    """Format a factor's interval ("1.2 to 1.5"): "" if its ends agree, "uncertain" if too wide."""
    if factor.low == factor.high:
        return ""
    if factor.high > WIDEST * factor.low:
        return _UNBOUNDED
    return f"{render_times(factor.low)} to {render_times(factor.high)}"


def render_per_second(rate: Decimal | float) -> str:
    """Format a rate a second: two significant digits below a hundred, no decimals above."""
    return units.rounded(rate, 2) if rate < 100 else f"{rate:,.0f}"


def render_rate(amount: Decimal, currency: str) -> str:
    """Format a price without rounding, with at least two decimals."""
    digits = units.plain(amount)
    whole, point, cents = digits.partition(".")
    return f"{units.symbol(currency)}{whole}{point or '.'}{cents:0<2}"


def render_hour(price: Price) -> str:
    """Format the price of one hour of a rented machine, to five decimals; a dash without one."""
    hour = hourly(price)
    return "—" if hour is None else render_rate(round(hour, 5), price.currency)


def hour_about(price: Price) -> str:
    """Format the price of a rented hour with few digits: "$3.06" or "$141"; a dash without one."""
    hour = hourly(price)
    return "—" if hour is None else amount_in_sentence(hour, price.currency)


def render_month_hour(price: Price) -> str:
    """Format the average price of an hour in a full month of use, such as "$3.06" or "$141"."""
    month = share(
        price, Usage(Decimal(units.HOURS_PER_BILLED_MONTH * units.SECONDS_PER_HOUR))
    ).total
    return amount_in_sentence(month / units.HOURS_PER_BILLED_MONTH, price.currency)


def amount_in_sentence(amount: Decimal, currency: str) -> str:
    """Format an amount with few digits, such as "$141", "$3.06" or "$0.012"."""
    return units.money(amount, currency, 0 if amount >= _WHOLE else None)


def render_month(per_million: Decimal, currency: str, requests: Requests) -> str:
    """Format the monthly cost of ``requests`` at the price ``per_million`` of a million tokens."""
    return f"{amount_in_sentence(per_million * requests.millions_a_month, currency)} a month"


def render_place(price: Price) -> str:
    """Format provider, plan and region of a price."""
    return ", ".join(filter(None, (*price.provider_and_plan, price.region)))


def plan_note(price: Price, *, through_month: bool = False) -> str:
    """Describe a price; ``through_month`` averages the hourly amount over a month of use."""
    doubt = f"; {price.unconfirmed_text} unconfirmed" if price.unconfirmed_text else ""
    about = render_month_hour if through_month else hour_about
    hour = [f"{about(price)} an hour"] if _is_by_the_hour(price) else []
    return f"{', '.join((*price.provider_and_plan, *hour))}, {price.as_of}{doubt}"


def _is_by_the_hour(price: Price) -> bool:
    return price.owned is None and hourly(price) is not None


def price_paid(price: Price) -> str:
    """Describe a price: provider, plan, date and, of a rented machine, the exact hourly amount."""
    hour = [render_hour(price)] if _is_by_the_hour(price) else []
    return ", ".join((*hour, " ".join(price.provider_and_plan), str(price.as_of)))


def render_billing(rule: Billing) -> str:
    """Describe a billing rule in a phrase."""
    increment, minimum = rule.increment_seconds, rule.minimum_seconds
    if increment == 0:
        step = "as used, not rounded"
    elif increment == 3600:
        step = "in whole hours"
    else:
        step = "per second" if increment == 1 else f"in steps of {units.plain(increment)} s"
    return step if minimum <= increment else f"{step}, {units.plain(minimum)} s minimum"


def render_ratio(observed: Observation) -> str:
    """Format a note on our training step's time relative to PyTorch's; empty if none is needed.

    The note says that our step is slower, or that it was not compared with PyTorch's at this size.
    """
    if observed.kind != "measured" or observed.mode != "training":
        return ""
    ratio = observed.step_ratio
    if ratio is None:
        return "not compared with PyTorch, which may be faster"
    if not ratio.near:
        where = f"{ratio.where}, not compared near this batch size"
        return f"{ratio.value:.2f} times PyTorch's time {where}"
    if ratio.value > 1:
        return " ".join(filter(None, [f"{ratio.value:.2f} times PyTorch's time", ratio.where]))
    return f"compared with PyTorch {ratio.where} only" if ratio.where else ""
