"""How often the plateau rule is right: made-up learning curves whose stable step is known.

Half are exponential, half power laws, from 20 to 80 points below their limit, with noise of 0.2 to
2 points at each evaluation; stable is the first step within 0.5 points of the limit. A curve has so
many evaluations until then, and ten times as many in all. Prints how often the rule's step is
within 10 % of the true one, and how often the truth lies in its interval of 90 %.

    python benchmarks/plateau_rule.py [--cases 1000]
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable

import numpy as np

from epochcost.results.trainings import Point
from epochcost.train.stability import find_stable

WITHIN = 0.005
LENGTH = 10


@dataclasses.dataclass(frozen=True)
class Case:
    """A curve, its noise, its family and the step from which on it is within the tolerance."""

    curve: list[Point]
    noise: float
    family: str
    stable: float


def made_case(rng: np.random.Generator, fewest: float, most: float, length: float) -> Case:
    """One curve with from ``fewest`` to ``most`` evaluations until it is stable."""
    family, stable = str(rng.choice(["exponential", "power"])), rng.uniform(fewest, most)
    depth, noise, limit = rng.uniform(0.2, 0.8), rng.uniform(0.002, 0.02), 0.95
    left: Callable[[np.ndarray], np.ndarray]
    steps = np.arange(1, int(length * stable) + 1)
    if family == "exponential":
        left = np.exp(-steps * np.log(depth / WITHIN) / stable)
    else:
        left = steps ** -(np.log(depth / WITHIN) / np.log(stable))
    heights = limit - depth * left + rng.normal(0, noise, len(steps))
    return Case([_point(*each) for each in zip(steps, heights, strict=True)], noise, family, stable)


def _point(step: int, height: float) -> Point:
    return Point.model_construct(step=int(step), accuracy=float(height), loss=0, learning_rate=0.1)


def main() -> None:
    """Print a row for each number of evaluations, by family and noise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    cases = parser.parse_args().cases
    for fewest, most in ((40, 400), (500, 4000)):
        rows = []
        rng = np.random.default_rng(0)
        for _ in range(cases):
            case = made_case(rng, fewest, most, LENGTH)
            found = find_stable(case.curve, WITHIN)
            assert found is not None, "the curves are long enough"
            error = abs(found.step - case.stable) / case.stable
            covered = found.low_step <= case.stable <= found.high_step
            rows.append((case.family == "power", case.noise, error <= 0.1, covered))
        table = np.array(rows, float)
        print(f"{fewest} to {most} evaluations until stable, {cases} cases:")
        _print("all", table)
        for family, name in ((0, "exponential"), (1, "power law")):
            of_family = table[table[:, 0] == family]
            _print(name, of_family)
            for low, high in ((0.002, 0.006), (0.006, 0.012), (0.012, 0.02)):
                near = of_family[(of_family[:, 1] >= low) & (of_family[:, 1] < high)]
                _print(f"{name}, noise {100 * low:g} to {100 * high:g} points", near)


def _print(name: str, rows: np.ndarray) -> None:
    right, covered = rows[:, 2].mean(), rows[:, 3].mean()
    print(f"  {name:<40} {right:6.1%} within 10 %, {covered:6.1%} in the interval")


if __name__ == "__main__":
    main()
