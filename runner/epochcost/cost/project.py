"""Whole projects: a search over configurations, repeated runs, and runs that fail.

Every run is started and billed by itself, so that machines at once save time and no money.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from types import MappingProxyType

from epochcost.cost.bill import quote
from epochcost.cost.lines import Line, Quote, Usage, apply_credit
from epochcost.cost.money import exact_arithmetic, quantized
from epochcost.errors import InputError
from epochcost.specs.price import Price


@dataclass(frozen=True, slots=True)
class Project:
    """``configurations`` times ``repeats`` runs that count, ``at_once`` of them side by side.

    ``failed_share`` of all runs that are started come to nothing, are paid for in full, and are
    started again. Raises InputError on numbers below 1 and on a share outside [0, 1).
    """

    configurations: int = 1
    repeats: int = 1
    at_once: int = 1
    failed_share: Decimal = Decimal(0)

    def __post_init__(self) -> None:
        for name in ("configurations", "repeats", "at_once"):
            value = getattr(self, name)
            if value < 1:
                raise InputError(
                    f"{name.replace('_', ' ')}: expected a whole number of at least 1, got {value}"
                )
        if not self.failed_share.is_finite() or not 0 <= self.failed_share < 1:
            raise InputError(
                "failed share: expected a share of at least 0 and below 1, got "
                f"{self.failed_share:.6g}"
            )

    @property
    def runs(self) -> int:
        """The runs that count."""
        return self.configurations * self.repeats

    @property
    def failures(self) -> Decimal:
        """How many failed runs are expected: s / (1 - s) for each that counts."""
        with exact_arithmetic():
            return quantized(self.runs * self.failed_share / (1 - self.failed_share))

    def rounds(self, at_once: int) -> int:
        """How often in a row so many run side by side, with whole failed runs as expected."""
        with exact_arithmetic():
            started = (self.runs + self.failures).to_integral_value(ROUND_CEILING)
            return int(-(-started // at_once))


# "Two configurations and ten runs per configuration": Sharir, Peleg, Shoham 2020 (AI21),
# arXiv 2004.08900, the upper end of their ranges for fully loaded costs.
PROJECTS: Mapping[str, Project] = MappingProxyType({"ai21": Project(configurations=2, repeats=10)})


@dataclass(frozen=True, slots=True)
class ProjectQuote:
    """A project's bill, and its time one run after the other and side by side."""

    project: Project
    quote: Quote
    in_sequence_seconds: Decimal
    at_once_seconds: Decimal


def quote_project(price: Price, usage: Usage, project: Project) -> ProjectQuote:
    """Bill a project whose every run is of this usage.

    The lines are those of all runs that count, then one for the runs that are expected to fail;
    free credit pays for both. Raises InputError where the usage is of several runs, and as
    ``quote`` does.
    """
    if usage.runs != 1:
        raise InputError(f"project: expected the usage of one run, got one of {usage.runs} runs")
    run = quote(price, usage, credit=Decimal(0))
    moved = usage.egress_gb * project.runs
    counted = quote(price, replace(usage, runs=project.runs, egress_gb=moved), credit=Decimal(0))
    with exact_arithmetic():
        lines = (*counted.lines, *_failed_lines(run, project))
        used, left = Decimal(0), None
        if price.credit is not None:
            lines, used, left = apply_credit(price.credit.amount, price.credit.label, lines)
        in_sequence, at_once = (
            quantized(run.elapsed_seconds * project.rounds(machines))
            for machines in (1, project.at_once)
        )
    whole = replace(
        counted, lines=lines, elapsed_seconds=at_once, credit_used=used, credit_left=left
    )
    return ProjectQuote(project, whole, in_sequence, at_once)


def _failed_lines(run: Quote, project: Project) -> tuple[Line, ...]:
    if project.failures == 0:
        return ()
    amount = quantized(project.failures * run.total)
    return (Line("failed runs, expected", project.failures, "run", run.total, amount),)
