"""Choose among ways to do a job by their time and cost, within a deadline and a budget."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Generic, TypeVar

from epochcost.cost.estimate import Estimate
from epochcost.errors import InputError
from epochcost.units import money, plain, seconds

KeyT = TypeVar("KeyT")


@dataclass(frozen=True, slots=True)
class Candidate(Generic[KeyT]):
    """A way to do a job, with its mean time and its cost."""

    key: KeyT
    seconds: Decimal
    cost: Estimate

    @property
    def figures(self) -> str:
        """Cost and time in words, such as "$3.20 in 2 h"."""
        return f"{money(self.cost.mean, self.cost.currency)} in {seconds(float(self.seconds))}"


def cheapest(candidates: Iterable[Candidate[KeyT]]) -> Candidate[KeyT] | None:
    """The candidate of lowest mean cost, then lowest time; None without candidates.

    All costs must be in the same currency.
    """
    return min(candidates, key=lambda way: (way.cost.mean, way.seconds), default=None)


def frontier(candidates: Iterable[Candidate[KeyT]]) -> tuple[Candidate[KeyT], ...]:
    """The candidates that no other candidate dominates, fastest first.

    A candidate dominates another if it is at least as good in mean time and mean cost, and better
    in one of them. All costs must be in the same currency.
    """
    best: list[Candidate[KeyT]] = []
    for candidate in sorted(candidates, key=_by_time):
        last = best[-1] if best else None
        if (
            last is None
            or candidate.cost.mean < last.cost.mean
            or _by_time(candidate) == _by_time(last)
        ):
            best.append(candidate)
    return tuple(best)


def _by_time(candidate: Candidate[KeyT]) -> tuple[Decimal, Decimal]:
    return candidate.seconds, candidate.cost.mean


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The accuracy in percent that a training reaches, and its spread over repeated trainings."""

    percent: Decimal
    spread: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class BatchChoice(Generic[KeyT]):
    """The cheapest batch size among those that may reach the best known accuracy.

    ``demanded`` is the best known accuracy minus its spread, in percent. ``less_accurate`` are the
    sizes whose accuracy plus spread is below ``demanded``, ``unknown`` those without a known
    accuracy. If no accuracy is known, ``choice``, ``batch_size`` and ``demanded`` are None.
    """

    choice: Candidate[KeyT] | None
    batch_size: int | None
    demanded: Decimal | None
    less_accurate: tuple[int, ...]
    unknown: tuple[int, ...]


def fastest(candidates: Iterable[Candidate[KeyT]]) -> Candidate[KeyT] | None:
    """The candidate of lowest mean time, then lowest cost; None without candidates."""
    return min(candidates, key=_by_time, default=None)


@dataclass(frozen=True, slots=True)
class Limits:
    """The deadline and the budget of a job; None means no limit."""

    deadline_seconds: Decimal | None = None
    budget: Decimal | None = None
    currency: str = "USD"

    @property
    def fastest(self) -> bool:
        """Whether to choose the fastest candidate, because there is a budget but no deadline."""
        return self.budget is not None and self.deadline_seconds is None

    @property
    def phrases(self) -> Mapping[str, str]:
        """Each limit as a phrase for people, by the limit's name."""
        phrases = {}
        if self.deadline_seconds is not None:
            phrases["deadline"] = f"within {seconds(float(self.deadline_seconds))}"
        if self.budget is not None:
            phrases["budget"] = f"for at most {self.budget_text}"
        return phrases

    @property
    def budget_text(self) -> str:
        """The budget as given, with at least two decimals; empty without a budget."""
        if self.budget is None:
            return ""
        decimals = plain(self.budget).partition(".")[2]
        return money(self.budget, self.currency, max(2, len(decimals)))

    @property
    def machines_text(self) -> str:
        """The machines with which a choice is compared: "machines", or those within the limits."""
        return "machines within the limits" if self.phrases else "machines"

    def met_by(self, candidate: Candidate[Any]) -> bool:
        """Whether a candidate meets the deadline and the budget."""
        within = self.budget is None or candidate.cost.mean <= self.budget
        return within and self._in_time(candidate)

    def divided(
        self, candidates: Iterable[Candidate[KeyT]]
    ) -> tuple[Sequence[Candidate[KeyT]], Sequence[Candidate[KeyT]]]:
        """The candidates that meet both limits, and the other candidates, each in their order."""
        every = tuple(candidates)
        met = tuple(filter(self.met_by, every))
        return met, tuple(itertools.filterfalse(self.met_by, every))

    def _in_time(self, candidate: Candidate[Any]) -> bool:
        return self.deadline_seconds is None or candidate.seconds <= self.deadline_seconds

    def choice(
        self,
        candidates: Sequence[Candidate[KeyT]],
        name: Callable[[Candidate[KeyT]], str],
        sought: str,
    ) -> Candidate[KeyT]:
        """The best candidate within the limits; all candidates must have the same currency.

        Raises InputError for a budget in another currency, or if no candidate meets the limits. The
        error then says what was ``sought``, and names the nearest candidate.
        """
        currency = candidates[0].cost.currency
        if self.budget is not None and self.currency != currency:
            raise InputError(
                f"budget: expected {currency} like the prices, got {self.currency}: state it in "
                f"{currency}, because no exchange rate is known"
            )
        best = fastest if self.fastest else cheapest
        choice = best(filter(self.met_by, candidates))
        if choice is not None:
            return choice
        nearest = cheapest(filter(self._in_time, candidates)) or fastest(candidates)
        assert nearest is not None, "callers pass at least one candidate"
        raise InputError(
            f"expected {sought}, found none: nearest is {name(nearest)}: {nearest.figures}"
        )


NO_LIMITS = Limits()


def cheapest_batch(
    candidates: Iterable[tuple[int, Candidate[KeyT]]], accuracies: Mapping[int, Accuracy]
) -> BatchChoice[KeyT]:
    """The cheapest pair of batch size and candidate that reaches the best known accuracy.

    A batch size reaches this accuracy if its range, accuracy ± spread, overlaps the range of the
    best. All costs must be in the same currency.
    """
    listed = list(candidates)
    sizes = sorted({size for size, _ in listed})
    unknown = tuple(size for size in sizes if size not in accuracies)
    rated = {size: accuracies[size] for size in sizes if size in accuracies}
    if not rated:
        return BatchChoice(None, None, None, (), unknown)
    best = max(rated.values(), key=lambda accuracy: accuracy.percent)
    demanded = best.percent - best.spread
    less = tuple(
        size for size, accuracy in rated.items() if accuracy.percent + accuracy.spread < demanded
    )
    equal = [(size, way) for size, way in listed if size in rated and size not in less]
    choice = cheapest(way for _, way in equal)
    size = next((size for size, way in equal if way is choice), None)
    return BatchChoice(choice, size, demanded, less, unknown)
