"""Recompute published figures from their rows' inputs, and compare them at the printed precision.

Each source has one function, whose docstring says how the source's figures follow from its times
and prices.
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
from epochcost.cost.energy import STRUBELL_2019, emissions_pounds, energy_kwh
from epochcost.cost.lines import Usage
from epochcost.cost.money import exact_arithmetic
from epochcost.errors import InputError
from epochcost.specs.price import Price
from epochcost.specs.published import Claim, Published, Timing, Unit, half_unit
from epochcost.specs.terms import BILLING_RULES
from epochcost.units import SECONDS_PER_HOUR, plain

# Base units (dollars, seconds, counts) in one of each unit.
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
    """The work of a published row, and the ``seconds`` that it takes.

    This is the source's time, or another time that rounds to it.
    """

    row: Timing
    seconds: Decimal
    prices: Mapping[str, Price]

    @property
    def epoch(self) -> Work:
        """The work of a single epoch, with its share of the time."""
        return replace(self, seconds=self.seconds / self.number("epochs"))

    def number(self, key: str) -> Decimal:
        """The row's value for a key."""
        value = getattr(self.row, key)
        if value is None:
            name = key.removeprefix("total_")
            raise InputError(f"{self.row.id}: expected {name}, got a row without")
        return Decimal(value)

    def cost(self, price: str | None = None, *, whole_hours: bool = False) -> Decimal:
        """Cost of the time in dollars at the row's price or another, prorated or in whole hours."""
        plan = self.prices.get(price or self.row.price or "")
        if plan is None or plan.currency != "USD":
            got = f"{plan.id} in {plan.currency}" if plan else "none"
            raise InputError(f"{self.row.id}: expected a price in USD, got {got}")
        usage = Usage(self.seconds, count=self.row.count)
        if not whole_hours:
            return share(plan, usage).total
        return quote(plan, usage, billing=BILLING_RULES["whole-hour"], credited=False).total


# The figure of a claim in base units, from the work of its row and of all rows by id; None if the
# source does not give its inputs. ``_LOOSE`` has figures that belong to no row.
Formula = Callable[[Claim, Work, Mapping[str, Work]], Decimal | None]


def _ai21_2020(claim: Claim) -> Decimal | None:
    """The cost of a project with all its runs is that of two configurations of ten runs each.

    One run of T5-11B takes 6 floating-point operations for each of 11 billion parameters and a
    trillion tokens (Kaplan et al. 2020). The cost of an operation is that of the run of 1.5 billion
    parameters: $80,000 for 1.18e21 operations on 131 billion tokens.
    """
    figures = {
        "fully loaded, 110 million parameters": Decimal(2500) * 2 * 10,
        "fully loaded, 340 million parameters": Decimal(10_000) * 2 * 10,
        "fully loaded, 1.5 billion parameters": Decimal(80_000) * 2 * 10,
        "one run of T5-11B": 6 * 11 * Decimal(80_000) / Decimal("1.18"),
    }
    return figures.get(claim.label)


def _kroutikov_2016(claim: Claim, work: Work, _rows: Mapping[str, Work]) -> Decimal | None:
    """The cost of an epoch is its time at the price of an hour, in proportion.

    The time of a batch is the whole time ÷ the number of steps. EC2 billed whole hours in 2016, so
    that an epoch alone and all 25 epochs are also rounded up to hours.
    """
    figures = {
        "one batch": lambda: work.seconds / work.number("total_steps"),
        "one epoch": work.epoch.cost,
        "one epoch alone": lambda: work.epoch.cost(whole_hours=True),
        "25 epochs, prorated": work.cost,
        "25 epochs": lambda: work.cost(whole_hours=True),
        "25 epochs take": lambda: work.seconds,
    }
    return _figure_of(claim, figures)


def _malta_2019(claim: Claim, work: Work, rows: Mapping[str, Work]) -> Decimal | None:
    """The cost is the time at the price of an hour; the speed-up is the p2's time ÷ the p3's.

    The number of images seen is steps × batch size. The learning rate first drops after 82 epochs
    of 45,000 images in whole steps. The steps until the accuracy is stable are stated as a multiple
    of the step of that drop.
    """
    batch = work.number("batch_size")
    first_drop = 82 * (45_000 // batch)
    figures = {
        "cost": work.cost,
        "speed-up over p2": lambda: rows[f"p2.xlarge-batch-{batch}"].seconds / work.seconds,
        "images seen": lambda: work.number("total_steps") * batch,
        "first rate drop": lambda: first_drop,
        "stabilised / first drop": lambda: work.number("total_steps") / first_drop,
    }
    return _figure_of(claim, figures)


def _strubell_2019(claim: Claim, work: Work, _rows: Mapping[str, Work]) -> Decimal | None:
    """The energy is 1.58 (the PUE) × power × hours; a kWh emits 0.954 lb of CO2 equivalent.

    The cost is the time at the lowest (spot) and at the highest (on-demand) price of the
    devices.
    """

    def energy() -> Decimal:
        return energy_kwh(work.number("power_watts"), work.seconds, STRUBELL_2019.pue)

    figures = {
        "cost, low": lambda: work.cost(claim.price),
        "cost, high": lambda: work.cost(claim.price),
        "energy": energy,
        "emissions": lambda: emissions_pounds(energy(), STRUBELL_2019.pounds_per_kwh),
    }
    return _figure_of(claim, figures)


def _woolf_2017(claim: Claim, work: Work, rows: Mapping[str, Work]) -> Decimal | None:
    """Times and costs are relative to the GPU: the row's time or cost ÷ the GPU's.

    The cost is in proportion to the time. "Twice as fast" is the GPU's time ÷ the row's.
    """
    gpu = rows["gpu"]
    figures = {
        "time, GPU = 1": lambda: work.seconds / gpu.seconds,
        "GPU against the best CPU: more than twice as fast": lambda: work.seconds / gpu.seconds,
        "any CPU against the GPU: twice as fast": lambda: gpu.seconds / work.seconds,
        "cost, GPU = 1": lambda: work.cost() / gpu.cost(),
        "64 vCPUs cost more than the GPU": lambda: work.cost() / gpu.cost(),
    }
    return _figure_of(claim, figures)


def _figure_of(claim: Claim, figures: Mapping[str, Callable[[], Decimal]]) -> Decimal | None:
    return figures[claim.label]() if claim.label in figures else None


# By the id of the source's page.
_FORMULAS: Mapping[str, Formula] = MappingProxyType(
    {
        "kroutikov-2016": _kroutikov_2016,
        "malta-2019": _malta_2019,
        "strubell-2019": _strubell_2019,
        "woolf-2017": _woolf_2017,
    }
)
_LOOSE: Mapping[str, Callable[[Claim], Decimal | None]] = MappingProxyType(
    {"ai21-2020": _ai21_2020}
)


def method(published: Published) -> str:
    """The formulas of a source's figures: the docstring of its function; empty if it has none."""
    formula = _FORMULAS.get(published.page) or _LOOSE.get(published.page)
    return cleandoc(formula.__doc__ or "") if formula else ""


@dataclass(frozen=True, slots=True)
class RecomputedFigure:
    """A recomputed figure with its range, in the claim's unit.

    ``exact`` is computed from the source's times; ``low`` and ``high`` are the least and the
    greatest value over all times that round to them.
    """

    exact: Decimal
    low: Decimal
    high: Decimal


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """A claim and the recomputed figure; if the figure is None, ``problem`` is the reason."""

    claim: Claim
    figure: RecomputedFigure | None
    problem: str | None = None

    @property
    def ours(self) -> Decimal | None:
        """The recomputed figure, rounded like the source's; halves round up, as in print."""
        if self.figure is None:
            return None
        return self.figure.exact.quantize(self.claim.value, rounding=ROUND_HALF_UP)

    @property
    def equal(self) -> bool:
        """Whether the recomputed figure equals the source's at its printed precision."""
        if self.ours is None:
            return False
        if self.claim.relation == "at-least":
            return self.ours >= self.claim.value
        return self.ours == self.claim.value

    @property
    def agreement(self) -> Agreement:
        """How well both figures agree.

        "within rounding" means that they are equal for a time that rounds to the source's time.
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
        """How well both figures agree, in words and with a sign, so that colour is not needed."""
        if self.equal and self.claim.relation == "at-least":
            return "≥ more"
        return _SIGNS[self.agreement]

    @property
    def our_digits(self) -> str:
        """The recomputed figure with up to two digits more than the source prints."""
        if self.figure is None:
            return "—"
        finer = self.figure.exact.quantize(self.claim.value.scaleb(-2), rounding=ROUND_HALF_UP)
        return f"{Decimal(plain(finer)):,f}"


@dataclass(frozen=True, slots=True)
class RowChecks:
    """The checks of the claims in a row; ``timing`` is None for claims that belong to no row."""

    timing: Timing | None
    checks: tuple[ClaimCheck, ...]


def recompute(published: Published, prices: Mapping[str, Price]) -> tuple[RowChecks, ...]:
    """Recompute every figure in a source's table from the inputs in its row."""
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
            figure = _figure(published, claim, timing, prices)
    except InputError as error:
        return ClaimCheck(claim, None, str(error))
    unknown = None if figure else "the source does not give its inputs"
    return ClaimCheck(claim, figure, unknown)


def _figure(
    published: Published, claim: Claim, timing: Timing | None, prices: Mapping[str, Price]
) -> RecomputedFigure | None:
    """The figure of a claim, recomputed, with its range over times that round to the source's.

    None if the source's function does not compute it.
    """
    figures: list[Decimal | None] = []
    formula, loose = _FORMULAS.get(published.page), _LOOSE.get(published.page)
    if timing is None and loose is not None:
        figures.append(loose(claim))
    elif timing is not None and formula is not None:
        works = {
            row.id: [
                Work(row, seconds, prices)
                for seconds in (row.total_seconds, *row.total_seconds_range)
            ]
            for row in published.timings
        }
        for end, other_end in ((0, 0), *product((1, 2), (1, 2))):
            row_ends = {identifier: ends[other_end] for identifier, ends in works.items()}
            figures.append(formula(claim, works[timing.id][end], row_ends))
    unit = _BASE_UNITS.get(claim.unit, Decimal(1))
    values = [figure / unit for figure in figures if figure is not None]
    return RecomputedFigure(values[0], min(values), max(values)) if values else None
