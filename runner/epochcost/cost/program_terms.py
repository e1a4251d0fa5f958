"""A price plan's terms as the expressions of its bill program, line by line as `cost.bill` bills.

Free credit is left out: it changes who pays and not what a job costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal

from epochcost.cost.money import exact_arithmetic
from epochcost.cost.owned import HOURS_PER_YEAR, MONTHS_PER_YEAR, WATTS_PER_KILOWATT
from epochcost.cost.parts import HOURS_PER_MONTH, Part, hourly_parts
from epochcost.cost.program import (
    Expression,
    Program,
    ceiling,
    largest,
    name,
    smallest,
    where,
)
from epochcost.cost.program_spot import RATE, Terms, Values, rounded, spot_values
from epochcost.errors import InputError
from epochcost.specs.owned import Owned
from epochcost.specs.price import Price
from epochcost.specs.terms import Interruptions
from epochcost.units import SECONDS_PER_HOUR

Lines = Iterator[tuple[str, Expression]]
# Of one run on one machine; `count` machines do each of `runs` runs.
_USAGE: Mapping[str, Decimal] = {"seconds": Decimal(1), "count": Decimal(1), "runs": Decimal(1)}
_MACHINES = name("count") * name("runs")


def bill_program(price: Price) -> Program:
    """The program of a job's own bill, as ``cost.quote`` without credit.

    Raises InputError where the plan cannot be billed at all.
    """
    with exact_arithmetic():
        if price.owned is not None:
            return _owned_program(price, price.owned)
        pauses = price.interruptions
        values = _calm_values(price, pauses)
        inputs = dict(_USAGE)
        if pauses is not None and pauses.rate_per_hour > 0:
            inputs[RATE] = pauses.rate_per_hour
            values = _interrupted(values, price, Terms.of(price, pauses))
        lines = (*_hourly_lines(hourly_parts(price)), *_other_lines(price, inputs))
        elapsed = name("elapsed") * name("runs")
        return Program(price.id, price.currency, inputs, values, lines, elapsed)


def share_program(price: Price) -> Program:
    """The program of a share of a longer job's bill, as ``cost.share``.

    Raises InputError where the plan charges nothing by the hour.
    """
    with exact_arithmetic():
        if price.owned is not None:
            return _owned_program(price, price.owned)
        parts = hourly_parts(price)
        if not parts:
            raise InputError(f"{price.id}: demanded a price per hour for a share; got none")
        inputs = dict(_USAGE)
        lines = (
            *((part.label, _per_hour(part) * name("seconds") * _MACHINES) for part in parts),
            *_storage_lines(price),
            *_egress_lines(price, inputs),
        )
        elapsed = name("seconds") * name("runs")
        return Program(
            price.id, price.currency, inputs, {"elapsed": name("seconds")}, lines, elapsed
        )


def _calm_values(price: Price, pauses: Interruptions | None) -> Values:
    """The schedule of `starts.uninterrupted`."""
    start, used = price.start, name("seconds")
    first = start.seconds if start.billed else Decimal(0)
    restart = pauses.restart_seconds if pauses else Decimal(0)
    save = pauses.checkpoint_seconds if pauses else Decimal(0)
    more, last = _starts_by_lifetime(price, first, restart + save)
    life = price.maximum_lifetime_seconds or Decimal(0)
    rule, again = price.billing_rule, name("more")
    failing = start.failure_probability / (1 - start.failure_probability)
    return {
        "more": more,
        "starting": (1 + again) * first + again * restart,
        "saving": again * save,
        "rework": Expression(0),
        "restarting": Expression(0),
        "billed": again * rounded(Expression(float(life)), rule) + rounded(last, rule),
        "failures": (1 + again) * failing,
        "elapsed": used + (1 + again + name("failures")) * start.seconds + again * (restart + save),
    }


def _starts_by_lifetime(
    price: Price, first: Decimal, pause: Decimal
) -> tuple[Expression, Expression]:
    """How many starts follow the first, and how long the last one is."""
    used, lifetime = name("seconds"), price.maximum_lifetime_seconds
    if lifetime is None:
        return Expression(0), first + used
    room = lifetime - first - pause
    if room <= 0:
        raise InputError(
            f"{price.id}: demanded a lifetime that leaves time to work; got {lifetime} s"
        )
    further = used - (lifetime - first)
    more = largest(0, ceiling(further / room))
    return more, where(
        name("more"), "==", 0, first + used, lifetime + further - name("more") * room
    )


def _interrupted(calm: Values, price: Price, terms: Terms) -> Values:
    """The schedule of `interrupted.schedule_of` where the rate of interruptions is above 0."""
    start, used = price.start, name("seconds")
    failing = start.failure_probability / (1 - start.failure_probability)
    starts = 1 + name("spot.interruptions") + name("spot.forced")
    again = largest(0, name("spot.starting") - terms.first)
    running = used + terms.first + name("spot.saving") + name("spot.rework") + again
    waiting = starts * start.seconds * (0 if start.billed else 1)
    spot: Values = {
        "starting": Expression(float(terms.first)),
        "saving": name("spot.saving"),
        "rework": name("spot.rework"),
        "restarting": again,
        "billed": largest(0, running + name("spot.rounding")),
        "failures": starts * failing,
        "elapsed": running + waiting + name("failures") * start.seconds,
    }
    chosen = {key: where(name(RATE), "<=", 0, calm[key], value) for key, value in spot.items()}
    return {"more": calm["more"], **spot_values(terms), **chosen}


def _hourly_lines(parts: tuple[Part, ...]) -> Lines:
    if not parts:
        return
    for part in parts:
        yield part.label, _per_hour(part) * name("seconds") * _MACHINES
    rate = sum((part.hourly for part in parts), Decimal(0)) / SECONDS_PER_HOUR
    so_far: Expression = name("seconds")
    for label, key in (
        ("compute, starting", "starting"),
        ("compute, checkpoints", "saving"),
        ("compute, rework expected", "rework"),
        ("compute, restarts expected", "restarting"),
    ):
        yield label, name(key) * rate * _MACHINES
        so_far += name(key)
    yield "compute, billed but unused", largest(0, name("billed") - so_far) * rate * _MACHINES
    yield "interrupted periods, free", smallest(0, name("billed") - so_far) * rate * _MACHINES


def _per_hour(part: Part) -> Decimal:
    return part.rate * part.units / SECONDS_PER_HOUR


def _other_lines(price: Price, inputs: dict[str, Decimal]) -> Lines:
    yield from _storage_lines(price)
    yield from _egress_lines(price, inputs)
    for part in price.components:
        if part.per == "run" and part.amount is not None:
            yield part.label, part.count * part.amount * name("runs")
    if price.start.failure_charge > 0:
        charge = price.start.failure_charge
        yield "failed starts, expected", name("failures") * charge * _MACHINES


def _storage_lines(price: Price) -> Lines:
    for part in price.components:
        if part.per == "gb-month" and part.amount is not None:
            month = HOURS_PER_MONTH * SECONDS_PER_HOUR
            yield part.label, part.count * part.amount / month * name("elapsed") * _MACHINES


def _egress_lines(price: Price, inputs: dict[str, Decimal]) -> Lines:
    for part in price.components:
        if part.per == "gb" and part.amount is not None:
            inputs["egress_gb"] = Decimal(0)
            yield part.label, part.amount * name("egress_gb")


def _owned_program(price: Price, plan: Owned) -> Program:
    """Depreciation, upkeep and energy; the plan's figures are inputs under their keys."""
    fields = ("purchase", "years", "utilisation", "power_watts", "pue", "electricity_per_kwh")
    inputs = {**_USAGE, **{f"owned.{field}": getattr(plan, field) for field in fields}}
    units = name("count")
    if plan.per_vcpu:
        inputs["vcpus"] = Decimal(1)
        units *= name("vcpus")
    hours = name("seconds") * name("runs") / SECONDS_PER_HOUR
    values = {"units": units, "hours": hours, "used_years": _used_years()}
    lines = tuple(_owned_lines(plan))
    elapsed = name("seconds") * name("runs")
    return Program(price.id, price.currency, inputs, values, lines, elapsed)


def _used_years() -> Expression:
    """The hours of use in a year."""
    return name("owned.utilisation") * HOURS_PER_YEAR


def _owned_lines(plan: Owned) -> Lines:
    hours, used = name("hours") * name("units"), name("used_years")
    loss = (name("owned.purchase") - plan.residual) / (name("owned.years") * used)
    yield "depreciation", hours * loss
    for label, yearly in (
        ("rack", plan.rack_per_month * MONTHS_PER_YEAR),
        ("maintenance", plan.maintenance_per_year),
    ):
        if yearly > 0:
            yield label, hours * (yearly / used)
    per_watt_hour = name("owned.pue") / WATTS_PER_KILOWATT * name("owned.electricity_per_kwh")
    if plan.idle_watts > 0:
        idle = 1 / name("owned.utilisation") - 1
        yield "idle energy, from declared power", hours * idle * plan.idle_watts * per_watt_hour
    yield "energy, from declared power", hours * name("owned.power_watts") * per_watt_hour
