"""How often the 95 % interval of a mean contains the true mean, by number of samples.

    python benchmarks/coverage_counts.py [--series 1000]

Prints CSV, a row for each kind of simulated series. Here a series comes from one process and has no
stopping rule; ``coverage`` has the rule and slower kinds of dependence.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from epochcost.statistics.interval import mean_interval

COUNTS = (10, 30, 100, 300, 1000)
MEAN, DEVIATION = 1.0, 0.03
RARE, RARE_DEVIATIONS = 0.02, 100

Series = NDArray[np.float64]
# Draws a series of this length with the generator; its true mean is ``MEAN``.
Kind = Callable[[np.random.Generator, int], Series]


def normal(random: np.random.Generator, count: int) -> Series:
    """Draw independent normal times."""
    return MEAN + DEVIATION * random.standard_normal(count)


def exponential(random: np.random.Generator, count: int) -> Series:
    """Draw independent exponential times."""
    return random.exponential(MEAN, count)


def correlated(correlation: float) -> Kind:
    """Draw normal times with this correlation between neighbours."""

    def draw(random: np.random.Generator, count: int) -> Series:
        values = random.standard_normal(count)
        values[1:] *= np.sqrt(1 - correlation**2)
        for at in range(1, count):
            values[at] += correlation * values[at - 1]
        return MEAN + DEVIATION * values

    return draw


def rare_slow_steps(random: np.random.Generator, count: int) -> Series:
    """Draw normal times of which one in fifty is a hundred deviations slower."""
    slow = (random.random(count) < RARE) - RARE
    return normal(random, count) + RARE_DEVIATIONS * DEVIATION * slow


KINDS: Mapping[str, Kind] = {
    "independent, normal": normal,
    "independent, exponential": exponential,
    "correlation 0.5 between neighbours": correlated(0.5),
    "correlation 0.8": correlated(0.8),
    "correlation 0.9": correlated(0.9),
    "one step in 50 is 100 deviations slower": rare_slow_steps,
}


def coverage(kind: Kind, count: int, series: int) -> float:
    """Share of simulated series whose interval holds the true mean."""
    random = np.random.default_rng((count, series))
    intervals = (mean_interval(kind(random, count)) for _ in range(series))
    return sum(interval.low <= MEAN <= interval.high for interval in intervals) / series


def main() -> None:
    """Read the options and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=1000)
    series = parser.parse_args().series
    rows = csv.writer(sys.stdout, lineterminator="\n")
    rows.writerow(["step times", *(f"{count:,} samples" for count in COUNTS)])
    for name, kind in KINDS.items():
        rows.writerow(
            [name, *(f"{coverage(kind, count, series):.1%}".replace("%", " %") for count in COUNTS)]
        )


if __name__ == "__main__":
    main()
