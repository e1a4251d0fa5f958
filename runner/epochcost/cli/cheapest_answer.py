"""What `epochcost cheapest` is asked and what it answers; how that is said is left to others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from epochcost.units import money, seconds

if TYPE_CHECKING:
    from epochcost.cost import Candidate
    from epochcost.cost.questions import BatchChoice
    from epochcost.report.offers import Offer, Offers

Mode = Literal["training", "inference", "epoch"]
MODES: Mapping[Mode, str] = MappingProxyType(
    {"training": "full training", "inference": "million inferences", "epoch": "epoch"}
)


@dataclass(frozen=True, slots=True)
class Demand:
    """What is asked for: a model, which work of it, by when and for how much at most."""

    model: str
    mode: Mode
    deadline_seconds: Decimal | None
    budget: Decimal | None
    currency: str

    @property
    def fastest(self) -> bool:
        """Whether the fastest is asked for: with a budget and no deadline."""
        return self.budget is not None and self.deadline_seconds is None

    def met_by(self, one: Candidate[Offer]) -> bool:
        """Whether a candidate is in time and within the budget."""
        late = self.deadline_seconds is not None and one.seconds > self.deadline_seconds
        return not late and (self.budget is None or one.cost.mean <= self.budget)

    @property
    def words(self) -> str:
        """The demand as a phrase."""
        limits = []
        if self.deadline_seconds is not None:
            limits.append(f"within {seconds(float(self.deadline_seconds))}")
        if self.budget is not None:
            limits.append(f"for at most {money(self.budget, self.currency)}")
        return " ".join([f"a {MODES[self.mode]} of {self.model}", *limits])


@dataclass(frozen=True, slots=True)
class Answer:
    """The choice among offers, and what is known of batch sizes."""

    demand: Demand
    offers: Offers
    choice: Candidate[Offer]
    batch: BatchChoice[Offer]

    @property
    def ordered(self) -> tuple[Candidate[Offer], ...]:
        """All that can be compared, the best by what is asked for first."""
        found = self.offers.candidates
        return tuple(sorted(found, key=lambda one: one.seconds)) if self.demand.fastest else found

    @property
    def others(self) -> tuple[Candidate[Offer], ...]:
        """What else meets the demand, the next best first."""
        met = (one for one in self.ordered if self.demand.met_by(one))
        return tuple(one for one in met if one is not self.choice)
