"""Recompute numbers that sources such as papers publish, and compare them, rounded as printed.

Each source has a function, whose docstring explains the source's formulas to readers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from inspect import cleandoc
from itertools import product
from types import MappingProxyType
from typing import Literal

from epochcost.cost.bill import quote, share
from epochcost.cost.lines import Usage
from epochcost.cost.money import exact_arithmetic, quantized
from epochcost.cost.owned import WATTS_PER_KILOWATT
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.published import Claim, Published, Timing, Unit, half_unit
from epochcost.specs.terms import BILLING_RULES
from epochcost.units import SECONDS_PER_HOUR, plain

# Each unit in base units: dollars, seconds or counts.
_BASE_UNITS: Mapping[Unit, Decimal] = MappingProxyType(
    {
        "US cents": Decimal("0.01"),
        "thousand USD": Decimal(10**3),
        "million USD": Decimal(10**6),
        "hours": Decimal(SECONDS_PER_HOUR),
        "percent": Decimal("0.01"),
        "million examples": Decimal(10**6),
    }
)
Agreement = Literal["equal", "within rounding", "differs", "not recomputed"]
_SIGNS: Mapping[Agreement, str] = MappingProxyType(
    {
        "equal": "= matches",
        "within rounding": "≈ matches (rounded)",
        "differs": "≠ differs",
        "not recomputed": "? not checked",
    }
)


@dataclass(frozen=True, slots=True)
class Work:
    """A row of a published table, with a time of the row's job, such as a training.

    ``seconds`` is the source's time, or the least or greatest time that rounds to it.
    """

    row: Timing
    seconds: Decimal
    prices: Mapping[str, Price]

    @property
    def epoch(self) -> Work:
        """The row's work for one epoch: ``seconds`` is divided by the row's number of epochs."""
        return replace(self, seconds=self.seconds / self.number("epochs"))

    def number(self, key: str) -> Decimal:
        """The number that the row states for ``key``; raises InputError if it is missing."""
        value = getattr(self.row, key)
        if value is None:
            name = key.removeprefix("total_")
            raise InputError(f"{self.row.id}: expected {name}, got a row without")
        return Decimal(value)

    def cost(self, price: str | None = None, *, whole_hours: bool = False) -> Decimal:
        """Cost of the work in dollars, at ``price`` or else at the row's price.

        Unless ``whole_hours``, the cost is prorated. Raises InputError without a price in USD.
        """
        plan = self.prices.get(price or self.row.price or "")
        if plan is None or plan.currency != "USD":
            got = f"{plan.id} in {plan.currency}" if plan else "none"
            raise InputError(f"{self.row.id}: expected a price in USD, got {got}")
        usage = Usage(self.seconds, count=self.row.count)
        if not whole_hours:
            return share(plan, usage).total
        return quote(plan, usage, billing=BILLING_RULES["whole-hour"], credited=False).total


# Functions that compute a source's numbers in base units, by the label of their claim.
Figures = Mapping[str, Callable[[], Decimal]]
# Returns the numbers of a row for a claim, the row's work, and the work of all rows by id.
# ``_LOOSE`` has numbers that belong to no row.
Formula = Callable[[Claim, Work, Mapping[str, Work]], Figures]


def _ai21_2020() -> Figures:
    """A project costs as much as twenty runs: two configurations with ten runs each.

    One run of T5-11B takes 6 floating-point operations for each parameter and token (Kaplan et al.
    2020), with 11 billion parameters and a trillion tokens. The price of an operation follows from
    the run of a model with 1.5 billion parameters: $80,000 for 1.18e21 operations.
    """
    return {
        "fully loaded, 110 million parameters": lambda: Decimal(2500) * 2 * 10,
        "fully loaded, 340 million parameters": lambda: Decimal(10_000) * 2 * 10,
        "fully loaded, 1.5 billion parameters": lambda: Decimal(80_000) * 2 * 10,
        "one run of T5-11B": lambda: 6 * 11 * Decimal(80_000) / Decimal("1.18"),
    }


def _kroutikov_2016(_claim: Claim, work: Work, _rows: Mapping[str, Work]) -> Figures:
    """The cost of an epoch is its time in hours × the price of an hour.

    The time of a batch is the time of the whole training, 25 epochs, ÷ its number of steps, each of
    one batch. In 2016, EC2 rounded billed time up to whole hours. Therefore, two further costs are
    computed with this rounding: the cost of a single epoch, and the cost of the whole training.
    """
    return {
        "one batch": lambda: work.seconds / work.number("total_steps"),
        "one epoch": work.epoch.cost,
        "one epoch alone": lambda: work.epoch.cost(whole_hours=True),
        "25 epochs, prorated": work.cost,
        "25 epochs": lambda: work.cost(whole_hours=True),
        "25 epochs take": lambda: work.seconds,
    }


def _malta_2019(_claim: Claim, work: Work, rows: Mapping[str, Work]) -> Figures:
    """The cost of a training is its time in hours × the price of an hour.

    The speed-up of a row is the time of a p2.xlarge machine with the same batch size ÷ the row's
    time. The number of images seen is steps × batch size. After 82 epochs, the learning rate drops
    for the first time; an epoch has 45,000 ÷ batch size steps, rounded down. The claim "stabilised
    / first drop" is the number of steps until the accuracy is stable ÷ the steps in 82 epochs.
    """
    batch = work.number("batch_size")
    first_drop = 82 * (45_000 // batch)
    return {
        "cost": work.cost,
        "speed-up over p2": lambda: _row(rows, f"p2.xlarge-batch-{batch}").seconds / work.seconds,
        "images seen": lambda: work.number("total_steps") * batch,
        "first rate drop": lambda: first_drop,
        "stabilised / first drop": lambda: work.number("total_steps") / first_drop,
    }


def _strubell_2019(claim: Claim, work: Work, _rows: Mapping[str, Work]) -> Figures:
    """The energy is 1.58 (the PUE) × power × hours; a kWh emits 0.954 lb of CO2 equivalent.

    The low cost is the hours × the spot price of all devices, the high cost the hours × their
    on-demand price.
    """
    # Section 2 (arXiv 1906.02243) has both numbers: the average PUE of data centres in 2018, and
    # the average emissions of a kWh in the United States (EPA). ``power_watts`` is of all machines.
    pue, pounds_per_kwh = Decimal("1.58"), Decimal("0.954")

    def energy() -> Decimal:
        hours = work.seconds / SECONDS_PER_HOUR
        return quantized(pue * hours * work.number("power_watts") / WATTS_PER_KILOWATT)

    return {
        "cost, low": lambda: work.cost(claim.price),
        "cost, high": lambda: work.cost(claim.price),
        "energy": energy,
        "emissions": lambda: quantized(energy() * pounds_per_kwh),
    }


def _woolf_2017(_claim: Claim, work: Work, rows: Mapping[str, Work]) -> Figures:
    """A relative time is the time of a training ÷ the time of the same training on the GPU.

    A relative cost is the quotient of the two costs, which are in proportion to the times. A CPU's
    speed relative to the GPU is the GPU's time ÷ the CPU's time.
    """
    gpu = _row(rows, "gpu")
    return {
        "time, GPU = 1": lambda: work.seconds / gpu.seconds,
        "GPU against the best CPU: more than twice as fast": lambda: work.seconds / gpu.seconds,
        "any CPU against the GPU: twice as fast": lambda: gpu.seconds / work.seconds,
        "cost, GPU = 1": lambda: work.cost() / gpu.cost(),
        "64 vCPUs cost more than the GPU": lambda: work.cost() / gpu.cost(),
    }


def _row(rows: Mapping[str, Work], identifier: str) -> Work:
    if identifier not in rows:
        raise InputError(f"{identifier}: expected a row with this id to compare with, found none")
    return rows[identifier]


# The function of each source, by the id of the source's page.
_FORMULAS: Mapping[str, Formula] = MappingProxyType(
    {
        "kroutikov-2016": _kroutikov_2016,
        "malta-2019": _malta_2019,
        "strubell-2019": _strubell_2019,
        "woolf-2017": _woolf_2017,
    }
)
_LOOSE: Mapping[str, Callable[[], Figures]] = MappingProxyType({"ai21-2020": _ai21_2020})


def method(published: Published) -> str:
    """The formulas for a source's numbers, as text; empty if this module has no formulas."""
    formula = _FORMULAS.get(published.page) or _LOOSE.get(published.page)
    return cleandoc(formula.__doc__ or "") if formula else ""


@dataclass(frozen=True, slots=True)
class RecomputedFigure:
    """A number in the claim's unit, with its range over all times that round to the source's."""

    exact: Decimal
    low: Decimal
    high: Decimal


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """A claim and the recomputed number, or the ``problem`` that prevents a recomputation."""

    claim: Claim
    figure: RecomputedFigure | None
    problem: str | None = None

    @property
    def ours(self) -> Decimal | None:
        """The recomputed number, rounded to the source's decimals; halves round up."""
        if self.figure is None:
            return None
        return self.figure.exact.quantize(self.claim.value, rounding=ROUND_HALF_UP)

    @property
    def equal(self) -> bool:
        """Whether the rounded number is the source's; for "at least", a larger one counts, too."""
        if self.ours is None:
            return False
        if self.claim.relation == "at-least":
            return self.ours >= self.claim.value
        return self.ours == self.claim.value

    @property
    def agreement(self) -> Agreement:
        """How well the recomputed number agrees with the source's number.

        "within rounding": other times, which round to the source's times, give the number.
        """
        if self.figure is None:
            return "not recomputed"
        if self.equal:
            return "equal"
        half = half_unit(self.claim.value)
        near = self.figure.low - half <= self.claim.value <= self.figure.high + half
        return "within rounding" if near else "differs"

    @property
    def outcome(self) -> str:
        """Agreement of the recomputed number with the source's number: a symbol and a phrase."""
        if self.equal and self.claim.relation == "at-least":
            return "≥ more"
        return _SIGNS[self.agreement]

    @property
    def our_digits(self) -> str:
        """The recomputed number with up to two more digits than the source's; a dash if unknown."""
        if self.figure is None:
            return "—"
        finer = self.figure.exact.quantize(self.claim.value.scaleb(-2), rounding=ROUND_HALF_UP)
        return f"{Decimal(plain(finer)):,f}"


@dataclass(frozen=True, slots=True)
class RowChecks:
    """Checks of the claims of a table's row; ``timing`` is None for claims that have no row."""

    timing: Timing | None
    checks: tuple[ClaimCheck, ...]


def recompute(published: Published, prices: Mapping[str, Price]) -> tuple[RowChecks, ...]:
    """Recompute every number that a source claims, grouped by the rows of the source's table.

    Rows without claims are included. Claims that belong to no row are in a last item.
    """
    groups = [(timing, timing.claims) for timing in published.timings]
    loose = [(None, published.claims)] if published.claims else []
    return tuple(
        RowChecks(timing, tuple(_check(published, claim, timing, prices) for claim in claims))
        for timing, claims in (*groups, *loose)
    )


def _check(
    published: Published, claim: Claim, timing: Timing | None, prices: Mapping[str, Price]
) -> ClaimCheck:
    try:
        with exact_arithmetic():
            return ClaimCheck(claim, _recompute_figure(published, claim, timing, prices))
    except InputError as error:
        return ClaimCheck(claim, None, str(error))


def _recompute_figure(
    published: Published, claim: Claim, timing: Timing | None, prices: Mapping[str, Price]
) -> RecomputedFigure:
    """Compute a claim's number from its inputs; InputError if this module has no formula for it."""
    figures: list[Figures] = []
    formula, loose = _FORMULAS.get(published.page), _LOOSE.get(published.page)
    if timing is None and loose is not None:
        figures.append(loose())
    elif timing is not None and formula is not None:
        works = {
            row.id: [
                Work(row, seconds, prices)
                for seconds in (row.total_seconds, *row.total_seconds_range)
            ]
            for row in published.timings
        }
        # Item 0 is the source's time; items 1 and 2 are the ends of the range that rounds to it.
        for end, other_end in ((0, 0), *product((1, 2), (1, 2))):
            row_ends = {identifier: ends[other_end] for identifier, ends in works.items()}
            figures.append(formula(claim, works[timing.id][end], row_ends))
    unit = _BASE_UNITS.get(claim.unit, Decimal(1))
    values = [each[claim.label]() / unit for each in figures if claim.label in each]
    if not values:
        raise InputError("the source does not give its inputs")
    return RecomputedFigure(values[0], min(values), max(values))
