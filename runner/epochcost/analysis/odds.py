"""Compute the probability that a choice is the cheapest, from draws of all alternatives' costs.

A draw is a random sample. Predicted times on several machines are drawn jointly, so that the error
that they share cancels. All price plans of a machine use the same drawn times.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, Literal, TypeVar

import numpy as np

from epochcost.analysis.observations import Observation
from epochcost.cost.estimate import Time
from epochcost.predict.joint import seed_of, standard_normals
from epochcost.predict.process import Vector
from epochcost.units import rounded

KeyT = TypeVar("KeyT", bound=Hashable)
Quantity = Literal["cost", "time"]

# Standard deviations of a normal mean to either end of its 95 % interval.
_DEVIATIONS = 1.96
# A way with lower odds of being cheaper is not listed.
LEAST_ODDS = 0.05
# Free work counts as almost free in logarithms and ratios of costs, in any currency.
_LEAST_COST = 1e-12
# A smaller regret is no loss: the best costs as much.
_LEAST_REGRET = 0.005
_LEADS: Mapping[Quantity, tuple[str, str, str, str]] = {
    "cost": ("costs least", "costs {} the cheapest", "more than", "about as much as"),
    "time": ("is the fastest", "takes {} the fastest", "longer than", "about as long as"),
}


@dataclass(frozen=True, slots=True)
class Odds(Generic[KeyT]):
    """Probabilities about a choice among ways to do a job, such as a machine under a price plan.

    ``shares`` has the probability that a way is the cheapest. ``cheaper`` has the probability that
    a way is cheaper than the choice. ``ratios`` has 90 % intervals of a way's cost / the choice's
    cost. ``regret`` is the mean extra cost of the choice, as a share of the cheapest cost.
    """

    choice: KeyT
    shares: Mapping[KeyT, float]
    cheaper: Mapping[KeyT, float]
    ratios: Mapping[KeyT, tuple[float, float]]
    regret: float

    @property
    def wins(self) -> float:
        """The probability that the choice is the cheapest."""
        return self.shares[self.choice]

    @property
    def rivals(self) -> tuple[KeyT, ...]:
        """Ways that beat the choice in at least ``LEAST_ODDS`` of draws, the likeliest first."""
        near = [key for key, share in self.cheaper.items() if share >= LEAST_ODDS]
        return tuple(sorted(near, key=lambda key: -self.cheaper[key]))


def odds(choice: KeyT, costs: Mapping[KeyT, Vector]) -> Odds[KeyT]:
    """Compute how likely ``choice`` and each other way to do a job cost least, from cost draws.

    Ways that tie for the lowest cost share the draw equally. A cost of 0 counts as ``_LEAST_COST``.
    """
    costs = {key: np.maximum(cost, _LEAST_COST) for key, cost in costs.items()}
    drawn = np.stack(list(costs.values()))
    least, choice_costs = drawn.min(axis=0), costs[choice]
    first = np.isclose(drawn, least, rtol=1e-9, atol=0.0)
    shares = (first / first.sum(axis=0)).mean(axis=1)
    rivals = {key: cost for key, cost in costs.items() if key != choice}
    return Odds(
        choice,
        {key: float(share) for key, share in zip(costs, shares, strict=True)},
        {key: float((cost < choice_costs).mean()) for key, cost in rivals.items()},
        {key: ratio_ends(cost, choice_costs) for key, cost in rivals.items()},
        float((choice_costs / least - 1).mean()),
    )


def ratio_ends(drawn: Vector, reference: Vector) -> tuple[float, float]:
    """The ends of the 90 % interval of ``drawn`` / ``reference``."""
    low, high = np.percentile(drawn / reference, [5, 95])
    return float(low), float(high)


def times_over(value: Decimal, reference: Decimal) -> float:
    """The cost or time ``value`` as a multiple of ``reference``; 1 if ``reference`` is 0."""
    return float(value / reference) if reference else 1.0


def odds_sentence(chances: Odds[KeyT], quantity: Quantity = "cost", among: str = "machines") -> str:
    """State in how many draws the choice is best, and how much worse it is in the others.

    Readers see a draw as a scenario. ``among`` is the noun for the ways. Empty if there is one way.
    """
    if len(chances.shares) == 1:
        return ""
    leads, loses, more, equal = _LEADS[quantity]
    wins = f"It {leads} of {len(chances.shares)} {among} in {scenarios(chances.wins)} scenarios"
    if chances.wins == 1:
        return f"{wins}."
    # The mean over lost draws; of a draw in which the choice ties with n - 1 ways, (n - 1) / n.
    regret = chances.regret / (1 - chances.wins)
    lost = f"{rounded(100 * regret, 2)} % {more}" if regret >= _LEAST_REGRET else equal
    return f"{wins}; in the others, it {loses.format(lost)}."


def scenarios(share: float) -> str:
    """Format a probability for readers ("97 of 100"); 0 or 100 only if it is certain."""
    percent = round(100 * share)
    if percent in {0, 100} and 0 < share < 1:
        return "over 99 of 100" if percent else "under 1 of 100"
    return f"{percent} of 100"


def draws_along(observed: Observation, time: Time, values: Sequence[Decimal]) -> Vector:
    """Draws [DRAWS] of a quantity with ``values`` at the low end, mean and high end of ``time``."""
    return values_along(time_draws(observed, time), time, values)


def values_along(drawn_times: Vector, time: Time, values: Sequence[Decimal]) -> Vector:
    """Compute draws [DRAWS] of a quantity from draws of the time on which it depends.

    ``drawn_times`` has draws of log(drawn time / mean of ``time``). ``values`` has the quantity at
    the low end, the mean and the high end of ``time``. Others are interpolated or extrapolated.
    """
    ends = zip((time.low, time.mean, time.high), values, strict=True)
    points = sorted({(float(at), max(float(value), _LEAST_COST)) for at, value in ends})
    seconds, logarithms = (np.log(column) for column in zip(*points, strict=True))
    at = np.log(float(time.mean)) + drawn_times
    inside = np.clip(at, seconds[0], seconds[-1])
    # Between two points, the quantity is a constant times a power of the time. Beyond the ends, the
    # nearest power continues, with its exponent limited to the range from 0 to 1.
    powers = (np.diff(logarithms) / np.diff(seconds)).clip(0, 1) if len(points) > 1 else [1.0]
    excess = (at - inside) * np.where(at < inside, powers[0], powers[-1])
    drawn: Vector = np.exp(np.interp(inside, seconds, logarithms) + excess)
    return drawn


def time_draws(observed: Observation, time: Time) -> Vector:
    """Draws [DRAWS] of log(t / m), where t is a possible true time and m the mean of ``time``.

    Without draws of a forecast, log(t / m) is normal with 95 % in the interval of ``time``.
    """
    if observed.draws is not None:
        return observed.draws.values
    return normal_draws(time, seed_of_observation(observed))


def normal_draws(time: Time, seed: int) -> Vector:
    """Draws [DRAWS] of log(time / mean), normal with a different deviation below and above 0."""
    below, above = deviations(time)
    normal = standard_normals(seed, 1)[:, 0]
    drawn: Vector = normal * np.where(normal < 0, below, above)
    return drawn


def deviations(time: Time) -> tuple[float, float]:
    """Standard deviations of log(time / mean): for times below the mean, then for times above.

    If the interval has no low end above zero, both deviations follow from the high end.
    """
    above = math.log(float(time.high / time.mean)) / _DEVIATIONS
    below = math.log(float(time.mean / time.low)) / _DEVIATIONS if time.bounded else above
    return below, above


def seed_of_observation(observed: Observation) -> int:
    """Compute a seed for an observation; it is the same for all price plans."""
    identity = (
        observed.workload.key,
        observed.machine,
        observed.mode,
        observed.batch_size,
        observed.software,
        observed.evidence.uri,
    )
    return seed_of(repr(identity))
